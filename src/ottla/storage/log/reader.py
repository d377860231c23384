"""Reads of a log: by offset for a fetch, by timestamp for a lookup, and the transactions to leave out.

A read gives a slice of a segment's file, not bytes: whoever sends it decides how.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from ottla.errors import CorruptRecordError, OffsetOutOfRangeError
from ottla.records import kernel
from ottla.records.batch import MAGIC_V2
from ottla.records.legacy.conversion import LegacyRecord, read_message_set
from ottla.records.record import Record, read_records
from ottla.storage import layout
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log.log import Log
from ottla.storage.log.log_slice import LogSlice
from ottla.storage.log.segment import Segment
from ottla.storage.scan import Scan


class Isolation(Enum):
    """How far a reader may see."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "high watermark"  # consumers
    COMMITTED = "committed"  # read_committed consumers


class Read(NamedTuple):
    """What a read found. `slice` is None when there is nothing (yet) at that offset."""

    slice: LogSlice | None
    high_watermark: int
    last_stable_offset: int
    start_offset: int
    aborted: list[AbortedTxn]
    is_cut: bool  # the slice does not hold even its first batch


class TimestampOffset(NamedTuple):
    """A record found by time."""

    timestamp: int
    offset: int
    leader_epoch: int


def read(
    log: Log,
    offset: int,
    max_bytes: int,
    *,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
    min_one_batch: bool = True,
    cached_only: bool = False,
    may_open: bool = True,
) -> Read:
    """Batches from the one that holds `offset` on. The slice may end inside a batch, as Kafka's do.

    With `cached_only`, ColdPagesError instead of a wait for the disk; without `may_open` also where a segment that
    nobody uses would have to be opened.
    """
    log.dir.check_online()
    if not log.start_offset <= offset <= log.end_offset:
        raise OffsetOutOfRangeError(
            f"{log.partition}: offset {offset} is not in [{log.start_offset}, {log.end_offset}]"
        )
    readable_end = limit(log, isolation)
    found: LogSlice | None = None
    is_cut = False
    aborted: list[AbortedTxn] = []
    wanted = offset < readable_end and (max_bytes > 0 or min_one_batch)
    try:
        for segment in log.segments.from_offset(offset) if wanted else []:
            if not may_open:
                segment.check_open(offset, max_bytes)
            until = _max_position(log, segment, readable_end, cached_only=cached_only)
            located = segment.read(
                offset, max_bytes, until, min_one_batch=min_one_batch, cached_only=cached_only
            )
            if located is not None:
                found = located[1]
                is_cut = found.size < located[0].size
                if isolation is Isolation.COMMITTED:
                    aborted = aborted_in(log, offset, _upper_bound(log, segment, found, readable_end))
                break
    except OSError as error:
        raise log.dir.fail(error, f"reading {log.partition}") from error
    return Read(found, log.high_watermark, log.last_stable_offset, log.start_offset, aborted, is_cut)


def limit(log: Log, isolation: Isolation) -> int:
    """The offset that such a reader may read up to."""
    if isolation is Isolation.LOG_END:
        return log.end_offset
    return log.high_watermark if isolation is Isolation.HIGH_WATERMARK else log.last_stable_offset


def _max_position(log: Log, segment: Segment, end_offset: int, *, cached_only: bool = False) -> int:
    """Where in the segment the part below `end_offset` ends."""
    next_base = log.segments.next_base(segment)
    if end_offset >= log.end_offset or (next_base is not None and next_base <= end_offset):
        return segment.size
    located = segment.locate(end_offset, cached_only=cached_only)
    return segment.size if located is None else located.position


def start_of(log: Log, offset: int) -> tuple[Segment, int]:
    """Where the batch that holds `offset`, or the next one, begins. ColdPagesError if that cannot be said at once."""
    try:
        for segment in log.segments.from_offset(offset):
            located = segment.locate(offset, cached_only=True)
            if located is not None:
                return segment, located.position
        return log.segments.active, log.segments.active.size
    except OSError as error:
        raise log.dir.fail(error, f"reading {log.partition}") from error


def bytes_until(log: Log, segment: Segment, position: int, end_offset: int) -> int | None:
    """How many bytes lie between a place and `end_offset`; None if that is in a later segment; ColdPagesError too."""
    try:
        next_base = log.segments.next_base(segment)
        if next_base is not None and end_offset > next_base:
            return None
        return _max_position(log, segment, end_offset, cached_only=True) - position
    except OSError as error:
        raise log.dir.fail(error, f"reading {log.partition}") from error


def _upper_bound(log: Log, segment: Segment, found: LogSlice, end_offset: int) -> int:
    """An offset that everything in the slice lies below."""
    bound = segment.offset_index.offset_at_or_after(found.position + found.size)
    if bound is None:
        bound = log.segments.next_base(segment)
    return end_offset if bound is None else min(bound, end_offset)


def aborted_in(log: Log, start_offset: int, end_offset: int) -> list[AbortedTxn]:
    """The aborted transactions with records in [start_offset, end_offset)."""
    found: list[AbortedTxn] = []
    for segment in log.segments.from_offset(start_offset):
        aborted, complete = segment.txn_index.collect(start_offset, end_offset)
        found += aborted
        if complete:
            break
    return found


def find_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record at or after `timestamp`, or None."""
    log.dir.check_online()
    try:
        for segment in log.segments:
            if segment.max_timestamp >= timestamp:
                found = _find_in_segment(segment, timestamp, log)
                if found is not None:
                    return found
    except OSError as error:
        raise log.dir.fail(error, f"reading {log.partition}") from error
    return None


def max_timestamp(log: Log) -> TimestampOffset | None:
    """The first record that has the largest timestamp of the log, or None."""
    log.dir.check_online()
    try:
        largest = max((segment.max_timestamp for segment in log.segments), default=-1)
    except OSError as error:
        raise log.dir.fail(error, f"reading {log.partition}") from error
    return None if largest < 0 else find_timestamp(log, largest)


def _find_in_segment(segment: Segment, timestamp: int, log: Log) -> TimestampOffset | None:
    # The entry at or below says that nothing before its offset is later than its own timestamp.
    from_offset = max(segment.time_index.lookup(timestamp - 1)[1], log.start_offset)
    position = segment.offset_index.lookup(from_offset)[1]
    for window in Scan(segment.file, segment.size, start=position, flags=0):
        for at in range(0, window.count * kernel.ROW, kernel.ROW):
            row = window.rows[at : at + kernel.ROW]
            if row[kernel.MAX_TIMESTAMP] >= timestamp and row[kernel.LAST_OFFSET] >= log.start_offset:
                found = _find_in_batch(segment, row, timestamp, log)
                if found is not None:
                    return found
    return None


def _find_in_batch(segment: Segment, row: array[int], timestamp: int, log: Log) -> TimestampOffset | None:
    data = segment.file.pread(row[kernel.SIZE], row[kernel.POSITION])
    _, _, status = kernel.scan(data, 0, len(data), array("q", bytes(8 * kernel.ROW)), kernel.CHECK_CRC)
    if status != kernel.OK:  # a record's timestamp is answered as it was written, or not at all
        raise CorruptRecordError(
            f"{segment.path(layout.LOG)}: at position {row[kernel.POSITION]}: {kernel.STATUS_MEANING[status]}"
        )
    for record in _records(data, row[kernel.MAGIC], log.config.decompression_max_bytes):
        if record.timestamp >= timestamp and record.offset >= log.start_offset:
            return TimestampOffset(record.timestamp, record.offset, row[kernel.LEADER_EPOCH])
    return None


def _records(data: bytes, magic: int, max_output_bytes: int) -> Iterator[Record | LegacyRecord]:
    if magic == MAGIC_V2:
        return read_records(data)
    return read_message_set(data, 0, len(data), max_output_bytes=max_output_bytes)
