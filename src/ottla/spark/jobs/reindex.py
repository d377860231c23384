"""Builds the indexes and producer snapshots of all logs anew: segments in tasks, the rest on the driver.

Tasks write new indexes under temporary names. Only when all of a log could be read do they take their places.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from ottla.errors import CorruptRecordError
from ottla.logtools.derive import DerivedSegment, derive_segment, join
from ottla.logtools.listing import DataDir, Partition, SegmentFiles, partitions_of
from ottla.logtools.offline import differs, refuse_damaged
from ottla.spark.jobs.tasks import TASK_BYTES, Sized, refuse_speculation, run_blocks
from ottla.storage import layout
from ottla.storage.checkpoint import prepare_file, put_in_place, replace_file
from ottla.storage.fs import FileSystem, RealFileSystem


@dataclass(slots=True)
class Reindexed:
    """The index files of one log that were rebuilt, or why it was refused."""

    partition: Partition
    changed: list[str] = field(default_factory=list)  # files that are (or would be) new or different
    refused: CorruptRecordError | None = None


@dataclass(frozen=True, slots=True)
class _Todo:
    """One segment to read."""

    segment: SegmentFiles
    next_base: int | None
    interval: int
    write: bool

    def derive(self) -> tuple[DerivedSegment, list[str]]:
        """What it says, without the two indexes; and which of those differ. They lie beside, if to be written."""
        fs = RealFileSystem()
        part = derive_segment(fs, self.segment, self.next_base, self.interval, lambda _: None)
        changed = [path for path, data in part.files.items() if differs(fs, path, data)]
        for path in changed if self.write else []:
            prepare_file(fs, path, part.files[path])
        part.files = {}
        return part, changed


def reindex(
    spark: SparkSession,
    fs: FileSystem,
    target: DataDir | Partition,
    *,
    interval: int,
    write: bool,
    task_bytes: int = TASK_BYTES,
) -> list[Reindexed]:
    """By partition. A damaged one is refused, and the others done."""
    if write:
        refuse_speculation(spark)
    partitions = list(partitions_of(fs, target))
    todo = [
        Sized(_Todo(segment, partition.next_base(segment), interval, write), segment.size)
        for partition in partitions
        for segment in partition.segments
    ]
    found = iter(run_blocks(spark, _Todo.derive, todo, task_bytes))
    return [
        _finish(fs, partition, [next(found) for _ in partition.segments], write=write)
        for partition in partitions
    ]


def _finish(
    fs: FileSystem, partition: Partition, parts: list[tuple[DerivedSegment, list[str]]], *, write: bool
) -> Reindexed:
    prepared = [path for _, changed in parts for path in changed]
    derived = join(fs, partition, (part for part, _ in parts))
    try:
        refuse_damaged(partition, derived)
    except CorruptRecordError as error:
        for path in prepared if write else []:
            fs.unlink(path + layout.TEMPORARY)
        return Reindexed(partition, refused=error)
    others = [path for path, data in derived.files.items() if differs(fs, path, data)]
    if write:
        for path in prepared:
            put_in_place(fs, path)
        for path in others:
            replace_file(fs, path, derived.files[path])
    return Reindexed(partition, [*prepared, *others])
