"""The tasks of an import: rows into batches by partition, then batches into finished segments.

A task of the first kind writes one spool file with the batches of all partitions, and says where those of each lie
and how many records they have. With that, offsets can be given out; a task of the second kind copies batches of one
partition from the spools and builds segments and indexes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ottla.config import LogConfig
from ottla.errors import ConfigError
from ottla.records.builder import seal_batch
from ottla.records.compression.codec import Codec
from ottla.spark.write.packing import OpenBatch, RowPacker
from ottla.storage.building.built_segments import BuiltSegments
from ottla.storage.fs import RealFileSystem

COLUMNS = ("key", "value", "headers", "partition", "timestamp")
_BUFFER_BYTES = 32 << 20
_ROWS_AT_ONCE = 16_384
_LATEST_TIME = 1 << 62
_NO_TIME = -1  # what Kafka says of messages of its first format


@dataclass(frozen=True, slots=True)
class Packing:
    """How rows become batches."""

    topic: str
    partitions: int
    codec: Codec
    batch_bytes: int
    now_ms: int  # the time of rows that have none
    directory: str  # where spools go


@dataclass(frozen=True, slots=True)
class Run:
    """Batches of one partition that lie one after another in a spool file."""

    path: str
    position: int
    size: int
    records: int


@dataclass(slots=True)
class Spool:
    """What a task has written: runs by partition, in the order of their rows."""

    runs: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 0


@dataclass(frozen=True, slots=True)
class ParquetPiece:
    """Row groups of one Parquet file."""

    path: str
    row_groups: list[int]
    partition: int | None = None  # of all its rows

    def read(self) -> Iterator[pa.RecordBatch]:
        file = pq.ParquetFile(self.path)
        columns = [name for name in COLUMNS if name in file.schema_arrow.names]
        for rows in file.iter_batches(_ROWS_AT_ONCE, row_groups=self.row_groups, columns=columns):
            if self.partition is None or "partition" in columns:
                yield rows
            else:
                numbers = pa.repeat(pa.scalar(self.partition, pa.int32()), rows.num_rows)
                yield rows.append_column("partition", numbers)


@dataclass(frozen=True, slots=True)
class SegmentsTodo:
    """Runs that become segments of one partition, from an offset on."""

    directory: str
    base_offset: int
    leader_epoch: int
    runs: list[Run]
    config: LogConfig

    def build(self) -> list[tuple[int, int]]:
        """The base offset and size of each segment."""
        fs = RealFileSystem()
        built = BuiltSegments(fs, self.directory, self.base_offset, self.leader_epoch, self.config)
        for run in self.runs:
            file = fs.open(run.path)
            try:
                built.add(bytearray(file.pread(run.size, run.position)))
            finally:
                file.close()
        built.finish()
        return [(segment.base_offset, segment.size) for segment in built.segments]


def pack_rows(batches: Iterable[pa.RecordBatch], packing: Packing, task: int) -> Spool:
    """Write all rows into a spool file, sorted by partition."""
    writer = _SpoolWriter(packing, task)
    packer = RowPacker(packing.batch_bytes, sticky=task)
    for rows in batches:
        if not rows.num_rows:
            continue
        times = _times(rows, packing.now_ms)
        for (_, partition), full in packer.add(packing.topic, packing.partitions, rows, times):
            writer.add(partition, full)
        if packer.open_bytes > _BUFFER_BYTES:
            writer.add_all(packer)
    writer.add_all(packer)
    return writer.finish(packer.rows)


class _SpoolWriter:
    """Keeps batches until there are enough of each partition to lie together."""

    def __init__(self, packing: Packing, task: int) -> None:
        self._packing = packing
        # Named after the attempt: one that was lost may still be writing.
        self._path = f"{packing.directory}/{task}-{os.urandom(8).hex()}.spool"
        self._file = RealFileSystem().open(self._path, create=True)
        self._waiting: dict[int, list[OpenBatch]] = defaultdict(list)
        self._bytes = self._position = 0
        self._spool = Spool()

    def add(self, partition: int, batch: OpenBatch) -> None:
        latest = batch.latest_time
        seal_batch(
            batch.data,
            batch.count,
            batch.base_time if latest is not None else self._packing.now_ms,
            codec=self._packing.codec,
            latest_time=latest,
        )
        self._waiting[partition].append(batch)
        self._bytes += len(batch.data)
        if self._bytes > _BUFFER_BYTES:
            self._write()

    def add_all(self, packer: RowPacker) -> None:
        for (_, partition), batch in packer.rest().items():
            self.add(partition, batch)

    def _write(self) -> None:
        for partition, batches in sorted(self._waiting.items()):
            data = b"".join(batch.data for batch in batches)
            self._file.pwrite(data, self._position)
            records = sum(batch.count for batch in batches)
            self._spool.runs[partition].append(Run(self._path, self._position, len(data), records))
            self._position += len(data)
        self._waiting.clear()
        self._bytes = 0

    def finish(self, rows: int) -> Spool:
        self._write()
        self._file.close()
        self._spool.rows = rows
        self._spool.runs = dict(self._spool.runs)
        return self._spool


def _times(rows: pa.RecordBatch, now_ms: int) -> memoryview | None:
    """The column timestamp in milliseconds; None if there is none."""
    if "timestamp" not in rows.schema.names:
        return None
    column = rows.column("timestamp")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    elif not pa.types.is_int64(column.type):
        raise ConfigError(
            f"the column timestamp is {column.type}: cast it to timestamp, or to long in milliseconds"
        )
    column = column.fill_null(now_ms)
    lowest, highest = pc.min_max(column).as_py().values()
    if lowest < _NO_TIME or highest >= _LATEST_TIME:
        wrong = lowest if lowest < _NO_TIME else highest
        raise ConfigError(f"a row has timestamp {wrong} ms: Kafka has times from 1970 on")
    data = memoryview(column.buffers()[1]).cast("B")
    return data[8 * column.offset : 8 * (column.offset + len(column))].cast("q")
