"""Builds a topic out of rows, in parallel: pack, give out offsets, build segments, put them in place.

Parquet files are read by the tasks themselves, in the order of names and row groups, and never pass the JVM. Any other
source is read by Spark, in the order of its partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ottla.config import LogConfig
from ottla.errors import ConfigError
from ottla.spark.jobs.import_rows import COLUMNS, Packing, ParquetPiece, Run, SegmentsTodo, Spool, pack_rows
from ottla.spark.jobs.tasks import TASK_BYTES, refuse_speculation, run_partitions, run_tasks
from ottla.spark.write.packing import check_columns

_PARTITION_DIR = re.compile(r"/partition=([0-9]+)/")


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """Where the segments of one partition are built, and from which offset on."""

    directory: str
    base_offset: int = 0
    leader_epoch: int = 0


@dataclass(slots=True)
class BuiltPartition:
    """What was built of one partition."""

    place: PartitionPlace
    end_offset: int
    segments: list[tuple[int, int]] = field(default_factory=list)  # base offset, size

    @property
    def size(self) -> int:
        return sum(size for _, size in self.segments)


def parquet_pieces(
    path: str, task_bytes: int = TASK_BYTES, *, keep_partitions: bool = False
) -> list[ParquetPiece]:
    """A file, or the files of a directory, cut between row groups.

    With `keep_partitions` the rows of a file under partition=<number> go to that partition.
    """
    found = sorted(map(str, Path(path).rglob("*.parquet"))) if Path(path).is_dir() else [path]
    if not found:
        raise ConfigError(f"{path} has no .parquet files")
    pieces: list[ParquetPiece] = []
    for name in found:
        try:
            file = pq.ParquetFile(name)
        except pa.ArrowInvalid as error:
            raise ConfigError(
                f"{name} is not a Parquet file: {error}; --format names other formats"
            ) from None
        check_columns(file.schema_arrow, "")
        named = _PARTITION_DIR.search(name) if keep_partitions else None
        partition = int(named[1]) if named else None
        size = 0
        groups: list[int] = []
        for number in range(file.metadata.num_row_groups):
            more = file.metadata.row_group(number).total_byte_size
            if groups and size + more > task_bytes:
                pieces.append(ParquetPiece(name, groups, partition))
                groups, size = [], 0
            groups.append(number)
            size += more
        if groups:
            pieces.append(ParquetPiece(name, groups, partition))
    return pieces


def pack_parquet(spark: SparkSession, pieces: list[ParquetPiece], packing: Packing) -> list[Spool]:
    return run_tasks(spark, _pack_piece, [(packing, number, piece) for number, piece in enumerate(pieces)])


def _pack_piece(todo: tuple[Packing, int, ParquetPiece]) -> Spool:
    packing, number, piece = todo
    return pack_rows(piece.read(), packing, number)


def pack_frame(frame: DataFrame, packing: Packing) -> list[Spool]:
    """Rows of any frame, in the order of its partitions."""
    frame = frame.select(*(name for name in COLUMNS if name in frame.columns))

    def pack(batches: Iterator[pa.RecordBatch], number: int) -> Iterator[tuple[int, Spool]]:
        yield number, pack_rows(_checked(batches), packing, number)

    return run_partitions(frame, pack)


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if number == 0:
            check_columns(batch.schema, "")
        yield batch


def build_segments(
    spark: SparkSession, spools: list[Spool], places: Mapping[int, PartitionPlace], config: LogConfig
) -> dict[int, BuiltPartition]:
    """Segments of every partition, complete and on disk, in the places given."""
    refuse_speculation(spark)
    built = {number: BuiltPartition(place, place.base_offset) for number, place in places.items()}
    owners: list[int] = []
    todo: list[SegmentsTodo] = []
    for number, partition in built.items():
        runs = [run for spool in spools for run in spool.runs.get(number, [])]
        for group in _grouped(runs, config.effective_segment_bytes):
            place = partition.place
            todo.append(
                SegmentsTodo(place.directory, partition.end_offset, place.leader_epoch, group, config)
            )
            owners.append(number)
            partition.end_offset += sum(run.records for run in group)
    for number, segments in zip(owners, run_tasks(spark, SegmentsTodo.build, todo), strict=True):
        built[number].segments += segments
    return built


def _grouped(runs: list[Run], limit: int) -> Iterator[list[Run]]:
    group: list[Run] = []
    size = 0
    for run in runs:
        if group and size + run.size > limit:
            yield group
            group, size = [], 0
        group.append(run)
        size += run.size
    if group:
        yield group
