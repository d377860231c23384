"""`ottla spark reindex` and `compact`: run the jobs, and show what they did to each log."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ottla.cli.failure import one_line
from ottla.cli.log.offline import differing
from ottla.cli.options import SparkOptions
from ottla.cli.spark.check import WHERE, Output, open_directory, writing
from ottla.cli.spark.progress import session_of
from ottla.cli.tables import print_table
from ottla.cli.values import format_size
from ottla.config import LogConfig
from ottla.errors import ConfigError
from ottla.logtools.listing import DataDir, Partition, partitions_of
from ottla.spark.jobs.compact import Compacted, compact
from ottla.spark.jobs.reindex import Reindexed, reindex
from ottla.words import counted

_HINT = "nothing was changed; --write does it"
_REINDEX = WHERE | {"done": bool, "refused": str}
_SIZES = ("size_before", "size_after", "segments_before", "segments_after", "cleaned_to")
_COMPACT = WHERE | dict.fromkeys(_SIZES, int) | {"refused": str}


def run_reindex(place: SparkOptions, path: str, output: Output, *, interval: int, write: bool) -> bool:
    """Whether no log was refused."""
    fs, target = open_directory(path)
    with writing(fs, target, write=write), session_of(place, "spark reindex") as spark:
        logs = reindex(spark, fs, target, interval=interval, write=write)
    changed = [file for log in logs for file in log.changed]
    for file in changed:
        print(f"{'rebuilt' if write else 'would rebuild'}: {file}")
    rows = [{"file": file, "done": write} for file in changed]
    rows += [
        {"file": log.partition.path, "done": False, "refused": str(log.refused)}
        for log in logs
        if log.refused
    ]
    output.write(_REINDEX, iter(rows))
    _print_reindexed(logs)
    print(differing(len(changed)) + ("" if write or not changed else f"; {_HINT}"))
    return not any(log.refused for log in logs)


def _print_reindexed(logs: list[Reindexed]) -> None:
    rows = []
    for log in logs:
        if log.refused is not None:
            print(one_line(log.refused), file=sys.stderr)
        if log.changed or log.refused:
            shown = "refused" if log.refused else str(len(log.changed))
            name, segments = log.partition.name, len(log.partition.segments)
            rows.append((name, segments, format_size(log.partition.size), shown))
    if rows:
        print_table(("partition", "segments>", "size>", "files that differ>"), rows)


def run_compact(
    place: SparkOptions,
    path: str,
    output: Output,
    *,
    topics: Sequence[str],
    delete_retention_ms: int,
    write: bool,
) -> bool:
    """Whether no log was refused."""
    fs, target = open_directory(path)
    if isinstance(target, DataDir) and not topics:
        raise ConfigError("name the topics to compact with --topic: others would lose records without a key")
    with writing(fs, target, write=write):
        partitions = [partition for partition in partitions_of(fs, target) if _is_meant(partition, topics)]
        missing = set(topics) - {p.topic_partition.topic for p in partitions if p.topic_partition}
        if missing:
            raise ConfigError(f"{path} has no topic {', '.join(sorted(missing))}")
        if not write:
            size = sum(segment.size for p in partitions for segment in p.segments[:-1])
            segments = sum(max(0, len(p.segments) - 1) for p in partitions)
            print(f"{format_size(size)} in {counted(segments, 'segment')} would be compacted; {_HINT}")
            return True
        config = LogConfig(
            cleanup_policy=frozenset({"compact"}),
            delete_retention_ms=delete_retention_ms,
            retention_ms=-1,
            retention_bytes=-1,
        )
        with session_of(place, "spark compact") as spark:
            found = compact(spark, fs, partitions, config)
    rows = (
        {name: getattr(done, name) for name in _SIZES} | {"file": done.path, "refused": _text(done)}
        for done in found
    )
    output.write(_COMPACT, rows)
    _print_compacted(found)
    return not any(done.refused for done in found)


def _is_meant(partition: Partition, topics: Sequence[str]) -> bool:
    name = partition.topic_partition
    return not topics or (name is not None and str(name) == partition.name and name.topic in topics)


def _text(done: Compacted) -> str | None:
    return None if done.refused is None else str(done.refused)


def _print_compacted(found: list[Compacted]) -> None:
    rows = []
    for done in found:
        if done.refused is not None:
            print(one_line(done.refused), file=sys.stderr)
        cleaned = "nothing to do" if done.cleaned_to is None else str(done.cleaned_to)
        row = (
            done.path.rpartition("/")[2],
            done.segments_before,
            done.segments_after,
            format_size(done.size_before),
            format_size(done.size_after),
            "refused" if done.refused else cleaned,
        )
        rows.append(row)
    print_table(("partition", "segments>", "now>", "size>", "now>", "compacted up to>"), rows)
