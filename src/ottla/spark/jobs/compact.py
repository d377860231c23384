"""Compacts logs, one in each task; what is clean then is written down once, on the driver."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ottla.config import LogConfig
from ottla.errors import BrokerError
from ottla.logtools.listing import Partition, list_partition
from ottla.logtools.offline import compact_log, note_cleaned
from ottla.runtime import SystemRuntime
from ottla.spark.jobs.tasks import refuse_speculation, run_tasks
from ottla.storage.fs import FileSystem, RealFileSystem


@dataclass(frozen=True, slots=True)
class Compacted:
    """One log before and after its compaction."""

    path: str
    size_before: int
    size_after: int
    segments_before: int
    segments_after: int
    cleaned_to: int | None  # None: there was nothing to do
    refused: BrokerError | None = None


def compact(
    spark: SparkSession, fs: FileSystem, partitions: list[Partition], config: LogConfig
) -> list[Compacted]:
    """A damaged log is refused, and the others done."""
    refuse_speculation(spark)
    largest_first = sorted(partitions, key=lambda partition: partition.size, reverse=True)
    todo = [(partition.path, config) for partition in largest_first]
    found = sorted(run_tasks(spark, _compact, todo), key=lambda compacted: compacted.path)
    note_cleaned(fs, {done.path: done.cleaned_to for done in found if done.cleaned_to is not None})
    return found


def _compact(todo: tuple[str, LogConfig]) -> Compacted:
    path, config = todo
    fs = RealFileSystem()
    partition = list_partition(fs, path)
    before = partition.size, len(partition.segments)
    cleaned_to, refused = None, None
    try:
        with closing(SystemRuntime()) as runtime:
            cleaned_to = compact_log(fs, partition, runtime, config)
    except BrokerError as error:
        refused = error
    now = list_partition(fs, path)
    return Compacted(path, before[0], now.size, before[1], len(now.segments), cleaned_to, refused)
