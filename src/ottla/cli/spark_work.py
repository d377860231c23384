"""`ottla spark`: runs the jobs, and shows what they found and did."""

from __future__ import annotations

from collections import Counter

from ottla.cli import log_verify
from ottla.cli.log_options import format_size
from ottla.cli.tables import console_for_stdout, new_table
from ottla.logtools.findings import DEFECT, NOTE, Finding
from ottla.logtools.source import DataDir, NotALogError, Partition, partitions_of, resolve
from ottla.spark.jobs.report import where, write_report
from ottla.spark.jobs.tasks import open_session
from ottla.spark.jobs.verify import verify
from ottla.storage.fs import FileSystem, RealFileSystem

_FINDING_COLUMNS = {
    "topic": str,
    "partition": int,
    "file": str,
    "level": str,
    "code": str,
    "position": int,
    "offset": int,
    "meaning": str,
}


def run_verify(
    path: str, where_: tuple[str | None, str | None], *, report: str | None, as_json: bool
) -> bool:
    """Whether all is well."""
    fs = RealFileSystem()
    target = open_directory(fs, path)
    with open_session(*where_) as spark:
        findings = list(verify(spark, fs, target))
    told = log_verify.tell(findings, as_json=as_json)
    if report is not None:
        rows = ({**where(finding.file), **finding.as_json()} for finding in findings)
        write_report(report, _FINDING_COLUMNS, rows)
    if not as_json:
        _print_findings(fs, target, findings)
    return log_verify.verdict(path, told, as_json=as_json)


def open_directory(fs: FileSystem, path: str) -> DataDir | Partition:
    target = resolve(fs, path)
    if isinstance(target, DataDir) or (isinstance(target, Partition) and target.whole):
        return target
    raise NotALogError(f"{path} is a single file; `ottla log` looks at those")


def _print_findings(fs: FileSystem, target: DataDir | Partition, findings: list[Finding]) -> None:
    partitions, segments, sizes = Counter[str](), Counter[str](), Counter[str]()
    for partition in partitions_of(fs, target):
        topic = partition.topic_partition.topic if partition.topic_partition else partition.name
        partitions[topic] += 1
        segments[topic] += len(partition.segments)
        sizes[topic] += partition.size
    levels = Counter((where(finding.file).get("topic", ""), finding.level) for finding in findings)
    table = new_table("topic", "partitions>", "segments>", "size>", "defects>", "notes>")
    for topic in sorted({*partitions, *(topic for topic, _ in levels)}):
        table.add_row(
            topic or "(the directory)",
            str(partitions[topic]),
            str(segments[topic]),
            format_size(sizes[topic]),
            str(levels[topic, DEFECT]),
            str(levels[topic, NOTE]),
        )
    console_for_stdout().print(table)
