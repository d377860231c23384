"""Counts what all segments of a data directory hold."""

from __future__ import annotations

from pyspark.sql import SparkSession

from ottla.logtools.listing import DataDir, Partition, SegmentFiles, partitions_of
from ottla.logtools.stats import SegmentStats, segment_stats
from ottla.spark.jobs.tasks import TASK_BYTES, Sized, run_blocks
from ottla.storage.fs import FileSystem, RealFileSystem


def stats(
    spark: SparkSession, fs: FileSystem, target: DataDir | Partition, task_bytes: int = TASK_BYTES
) -> list[SegmentStats]:
    """In the order of the files."""
    segments = [
        Sized(segment, segment.size)
        for partition in partitions_of(fs, target)
        for segment in partition.segments
    ]
    return [found for found in run_blocks(spark, _count, segments, task_bytes) if found is not None]


def _count(segment: SegmentFiles) -> SegmentStats | None:
    return segment_stats(RealFileSystem(), segment)
