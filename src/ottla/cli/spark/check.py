"""`ottla spark verify`, `stats` and `repair`: run the jobs, and show what they found and did."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

from ottla.cli.json_text import to_json
from ottla.cli.log import verify as log_verify
from ottla.cli.log.repair import Tally
from ottla.cli.options import SparkOptions
from ottla.cli.spark.progress import session_of
from ottla.cli.tables import Column, print_table
from ottla.cli.values import format_size, format_time
from ottla.logtools.findings import DEFECT, NOTE, Finding
from ottla.logtools.listing import DataDir, NotALogError, Partition, all_partitions_of, resolve
from ottla.logtools.repair.log import bound_by
from ottla.logtools.stats import SegmentStats
from ottla.logtools.writing import data_dir_of, locked
from ottla.runtime import SystemRuntime
from ottla.spark.jobs.repair import apply_repairs, plan_repairs
from ottla.spark.jobs.report import where, write_report
from ottla.spark.jobs.stats import stats
from ottla.spark.jobs.verify import verify
from ottla.storage.fs import FileSystem, RealFileSystem

WHERE: dict[str, type] = {"topic": str, "partition": int, "file": str}
_FINDING = {**WHERE, "level": str, "code": str, "position": int, "offset": int, "meaning": str}
_REPAIR = {**WHERE, "action": str, "position": int, "size": int, "offset": int, "meaning": str, "done": bool}
_STATS = {
    **WHERE,
    **{field.name: str if field.name in ("codecs", "file") else int for field in fields(SegmentStats)},
}


@dataclass(frozen=True, slots=True)
class Output:
    """How a job's results are printed: as JSON or as a table; and the Parquet report, if one is asked for."""

    report: str | None
    as_json: bool = False

    def write(self, columns: dict[str, type], rows: Iterator[dict[str, Any]]) -> None:
        if self.report is not None:
            write_report(self.report, columns, ({**where(row["file"]), **row} for row in rows))


def run_verify(place: SparkOptions, path: str, output: Output) -> bool:
    """Whether all is well."""
    fs, target = open_directory(path)
    with session_of(place, "spark verify") as spark:
        findings = list(verify(spark, fs, target))
    told = log_verify.tell(findings, as_json=output.as_json)
    output.write(_FINDING, (finding.as_json() for finding in findings))
    if not output.as_json:
        _print_findings(fs, target, findings)
    return log_verify.verdict(path, told, as_json=output.as_json, mend=path)


def run_stats(place: SparkOptions, path: str, output: Output) -> None:
    fs, target = open_directory(path)
    with session_of(place, "spark stats") as spark:
        found = stats(spark, fs, target)
    output.write(_STATS, (asdict(segment) for segment in found))
    if output.as_json:
        for segment in found:
            print(to_json({**where(segment.file), **asdict(segment)}))
    else:
        _print_stats(found)


def run_repair(place: SparkOptions, path: str, output: Output, *, write: bool, skip_corrupt: bool) -> bool:
    """Whether nothing is left that this does not mend."""
    fs, target = open_directory(path)
    with closing(SystemRuntime()) as runtime:
        tally = Tally(write=write, as_json=output.as_json, now_ms=runtime.now_ms())
    with writing(fs, target, write=write), session_of(place, "spark repair") as spark:
        planned = plan_repairs(spark, fs, target, skip_corrupt=skip_corrupt)
        if write:
            for partition, mended in apply_repairs(
                spark, planned, skip_corrupt=skip_corrupt, now_ms=tally.now_ms
            ):
                bound_by(fs, mended.left)
                tally.tell_steps(mended.steps)
                tally.add(partition, mended.left)
        else:
            for partition, plan in planned:
                tally.tell_steps([*plan.steps, *plan.later])
                tally.add(partition, plan)
        tally.finish_data_dir(fs, target)
    done = ({**asdict(step), "done": write} for step in tally.steps)
    left = ({**finding.as_json(), "action": "not mended", "done": False} for finding in tally.left)
    output.write(_REPAIR, (row for rows in (done, left) for row in rows))
    if not output.as_json:
        _print_steps(tally)
    return tally.finish()


def open_directory(path: str) -> tuple[FileSystem, DataDir | Partition]:
    fs = RealFileSystem()
    target = resolve(fs, path)
    if isinstance(target, DataDir) or (isinstance(target, Partition) and target.whole):
        return fs, target
    raise NotALogError(f"{path} is a single file; `ottla log` looks at those")


@contextmanager
def writing(fs: FileSystem, target: DataDir | Partition, *, write: bool) -> Iterator[None]:
    """Hold the data directory while tasks change what is in it."""
    data_dir = target.path if isinstance(target, DataDir) else data_dir_of(fs, target.path)
    with locked(fs, data_dir if write else None):
        yield


def _print_findings(fs: FileSystem, target: DataDir | Partition, findings: list[Finding]) -> None:
    partitions, segments, sizes = Counter[str](), Counter[str](), Counter[str]()
    for partition in all_partitions_of(fs, target):
        topic = partition.topic_partition.topic if partition.topic_partition else partition.name
        partitions[topic] += 1
        segments[topic] += len(partition.segments)
        sizes[topic] += partition.size
    levels = Counter((where(finding.file).get("topic", ""), finding.level) for finding in findings)
    rows = [
        (
            topic or "(the directory)",
            partitions[topic],
            segments[topic],
            format_size(sizes[topic]),
            levels[topic, DEFECT],
            levels[topic, NOTE],
        )
        for topic in sorted({*partitions, *(topic for topic, _ in levels)})
    ]
    print_table(("topic", "partitions>", "segments>", "size>", "defects>", "notes>"), rows)


def _print_steps(tally: Tally) -> None:
    steps = Counter((where(step.file).get("topic", ""), step.action) for step in tally.steps)
    left = Counter(where(finding.file).get("topic", "") for finding in tally.left)
    actions = sorted({action for _, action in steps})
    rows = [
        (topic or "(the directory)", *(steps[topic, action] for action in actions), left[topic])
        for topic in sorted({*left, *(topic for topic, _ in steps)})
    ]
    if rows:
        print_table(("topic", *(f"{action}>" for action in actions), "not mended>"), rows)


def _print_stats(found: list[SegmentStats]) -> None:
    by_topic: dict[str, list[SegmentStats]] = defaultdict(list)
    for segment in found:
        by_topic[where(segment.file).get("topic", "?")].append(segment)
    rows = []
    for topic, segments in sorted(by_topic.items()):
        size, records = sum(s.size for s in segments), sum(s.records for s in segments)
        first = [s.min_timestamp for s in segments if s.min_timestamp is not None]
        last = [s.max_timestamp for s in segments if s.max_timestamp is not None]
        row = (
            topic,
            len({s.file.rpartition("/")[0] for s in segments}),
            len(segments),
            format_size(size),
            sum(s.batches for s in segments),
            records,
            f"{size / records:.1f}" if records else "-",
            " ".join(dict.fromkeys(word for s in segments for word in s.codecs.split())),
            format_time(min(first)) if first else "-",
            format_time(max(last)) if last else "-",
            sum(s.unreadable for s in segments),
        )
        rows.append(row)
    columns = (
        "topic",
        "partitions>",
        Column("segments", right=True, rank=2),
        "size>",
        Column("batches", right=True, rank=3),
        "records>",
        Column("bytes/record", right=True, rank=4),
        Column("codecs", rank=1),
        Column("from", rank=6),
        Column("to", rank=5),
        "unreadable>",
    )
    print_table(columns, rows)
