"""Goes through the batches or records of a partition that a query asks for, and reads no more than it must.

Segments outside the query are not opened; in those inside, the offset and time indexes say where to begin. What is
damaged comes out as `Damage`, and what follows it still comes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.errors import CorruptRecordError
from ottla.logtools.listing import Partition, SegmentFiles, open_if_there
from ottla.logtools.walk import Damage, walk
from ottla.records import batch, kernel
from ottla.records.record import Record
from ottla.storage import layout
from ottla.storage.batch_reader import batch_bytes, read_records
from ottla.storage.find_batch import is_good_batch
from ottla.storage.fs import File, FileSystem
from ottla.storage.indexes.foreign_index import ForeignOffsetIndex, ForeignTimeIndex

MAX_OFFSET = 2**63 - 1
Progress = Callable[[int], None]  # bytes of log files done since the last call


@dataclass(frozen=True, slots=True)
class Query:
    """Which records are wanted. Ranges are half-open."""

    from_offset: int = 0
    to_offset: int = MAX_OFFSET
    from_ms: int | None = None
    to_ms: int | None = None
    key: bytes | None = None

    def wants(self, record: Record) -> bool:
        return (
            self.from_offset <= record.offset < self.to_offset
            and (self.from_ms is None or record.timestamp >= self.from_ms)
            and (self.to_ms is None or record.timestamp < self.to_ms)
            and (self.key is None or record.key == self.key)
        )

    @property
    def looks_into_batches(self) -> bool:
        """Whether a batch's header is not enough to tell that it holds what is wanted."""
        return self.key is not None or self.to_ms is not None or self.from_ms is not None


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A good batch: kernel.ROW numbers, valid until the next one is asked for."""

    segment: SegmentFiles
    row: array[int]
    data: memoryview


@dataclass(frozen=True, slots=True)
class FoundDamage:
    """Bytes that are not good batches, with the header of the first bad one if it is whole."""

    segment: SegmentFiles
    damage: Damage
    header: batch.BatchHeader | None


def dump_batches(
    fs: FileSystem, partition: Partition, query: Query, on_progress: Progress = lambda _: None
) -> Iterator[FoundBatch | FoundDamage]:
    """Batches that hold at least one record (or, without times and key, one offset) that the query wants."""
    for found in _batches(fs, partition, query, on_progress):
        if isinstance(found, FoundDamage) or not query.looks_into_batches or _has_wanted(found, query):
            yield found


def _has_wanted(found: FoundBatch, query: Query) -> bool:
    try:
        return any(query.wants(record) for record in read_records(found.data, found.row))
    except CorruptRecordError:
        return True  # better shown than hidden


def dump_records(
    fs: FileSystem, partition: Partition, query: Query, on_progress: Progress = lambda _: None
) -> Iterator[tuple[FoundBatch, Record] | FoundDamage]:
    """Every record that the query wants, with its batch."""
    for found in _batches(fs, partition, query, on_progress):
        if isinstance(found, FoundDamage):
            yield found
            continue
        row = found.row
        all_wanted = (
            not query.looks_into_batches
            and row[kernel.MAGIC] == batch.MAGIC_V2
            and query.from_offset <= row[kernel.BASE_OFFSET]
            and row[kernel.LAST_OFFSET] < query.to_offset
        )
        try:
            for record in read_records(found.data, row):
                if all_wanted or query.wants(record):
                    yield found, record
        except CorruptRecordError:
            position, size = row[kernel.POSITION], row[kernel.SIZE]
            bad = Damage(
                position, position + size, kernel.BAD_RECORD, row[kernel.BASE_OFFSET], size, is_tail=False
            )
            yield FoundDamage(found.segment, bad, None)


def _batches(
    fs: FileSystem, partition: Partition, query: Query, on_progress: Progress
) -> Iterator[FoundBatch | FoundDamage]:
    segments = partition.segments
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else MAX_OFFSET
        if segment.base_offset >= query.to_offset:
            return
        if next_base <= query.from_offset or _is_too_old(fs, segment, next_base, query):
            on_progress(segment.size)
            continue
        file = open_if_there(fs, segment.path(layout.LOG))
        if file is None:
            continue  # retention took it
        try:
            yield from _segment_batches(fs, segment, file, next_base, query, on_progress)
        finally:
            file.close()


def _is_too_old(fs: FileSystem, segment: SegmentFiles, next_base: int, query: Query) -> bool:
    if query.from_ms is None or next_base == MAX_OFFSET:
        return False
    with ForeignTimeIndex(fs, segment.path(layout.TIME_INDEX)) as index:
        largest = index.largest()
    return largest is not None and largest < query.from_ms


def _segment_batches(
    fs: FileSystem, segment: SegmentFiles, file: File, next_base: int, query: Query, on_progress: Progress
) -> Iterator[FoundBatch | FoundDamage]:
    end = file.size()
    start = _start(fs, segment, file, end, query)
    on_progress(start)
    for found in walk(file, end, start=start, min_offset=segment.base_offset, max_offset=next_base):
        if isinstance(found, Damage):
            on_progress(found.end - found.position)
            yield FoundDamage(segment, found, _header(file, found))
            continue
        size = 0
        for at in range(0, found.count * kernel.ROW, kernel.ROW):
            row = found.rows[at : at + kernel.ROW]
            size += row[kernel.SIZE]
            if _first_offset(row) >= query.to_offset:
                return
            if row[kernel.LAST_OFFSET] >= query.from_offset and not _is_older(row, query):
                yield FoundBatch(segment, row, batch_bytes(file, found, row))
        on_progress(size)


def _is_older(row: array[int], query: Query) -> bool:
    return query.from_ms is not None and row[kernel.MAX_TIMESTAMP] < query.from_ms


def _first_offset(row: array[int]) -> int:
    """Of a compressed message of the old formats only the last offset is known from outside."""
    is_wrapper = row[kernel.MAGIC] < batch.MAGIC_V2 and row[kernel.ATTRIBUTES] & batch.CODEC_MASK
    return 0 if is_wrapper else row[kernel.BASE_OFFSET]


def _start(fs: FileSystem, segment: SegmentFiles, file: File, end: int, query: Query) -> int:
    """The position to begin at; the file's start if the index points at no batch."""
    offset = query.from_offset
    if query.from_ms is not None:
        with ForeignTimeIndex(fs, segment.path(layout.TIME_INDEX)) as times:
            offset = max(offset, segment.base_offset + times.offset_before(query.from_ms))
    if offset <= segment.base_offset:
        return 0
    with ForeignOffsetIndex(fs, segment.path(layout.INDEX)) as offsets:
        position = offsets.position_before(offset - segment.base_offset)
    in_range = 0 < position < end and is_good_batch(file, position, end, segment.base_offset, offset + 1)
    return position if in_range else 0


def _header(file: File, damage: Damage) -> batch.BatchHeader | None:
    data = file.pread(batch.HEADER_SIZE, damage.position)
    is_v2 = len(data) == batch.HEADER_SIZE and data[batch.MAGIC_AT] == batch.MAGIC_V2
    return batch.parse_header(data) if is_v2 and damage.size >= batch.HEADER_SIZE else None
