"""Single records as Python objects, for tools, tests and lookups inside one batch.

Hot paths never come here: they stay with the numbers that the kernel writes. Compressed batches are opened
window by window, so that memory is bounded by a window and the largest record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records import kernel
from ottla.records.batch import HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, parse_header
from ottla.records.compression.streams import windows

if TYPE_CHECKING:
    from typing_extensions import Buffer

WINDOW_BYTES = 1 << 20
_ROWS = 512

Headers = list[tuple[bytes, bytes | None]]


class Record(NamedTuple):
    """A record with its absolute offset and the timestamp that a consumer sees."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def read_batches(buf: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each v2 batch up to the end of `buf`, which must be the end of a batch."""
    size = len(memoryview(buf))
    while position < size:
        header = _whole_batch(buf, position)
        yield position, header
        position += header.size


def read_records(
    buf: Buffer, position: int = 0, *, window_bytes: int = WINDOW_BYTES, first_offset: int = 0
) -> Iterator[Record]:
    """The records of the v2 batch at `position`, from `first_offset` on. Its CRC is not checked; see kernel.scan for
    that."""
    header = _whole_batch(buf, position)
    base_timestamp = header.base_timestamp
    body = memoryview(buf)[position + HEADER_SIZE : position + header.size]
    rows = array("q", bytes(8 * kernel.REC_ROW * _ROWS))
    data = bytearray()
    found = 0
    for piece in windows(header.codec, body, window_bytes):
        data += piece
        at, count, status = 0, _ROWS, kernel.OK
        while count == _ROWS:
            count, at, status = kernel.decode(data, at, len(data), header.base_offset, base_timestamp, rows)
            found += count
            first = _rows_before(rows, count, first_offset) if first_offset else 0
            for start in range(first * kernel.REC_ROW, count * kernel.REC_ROW, kernel.REC_ROW):
                yield _record(data, rows[start : start + kernel.REC_ROW], header)
        if status == kernel.BAD_RECORD:
            break
        del data[:at]
    if data or found != header.count:
        raise CorruptRecordError(
            f"the batch at position {position} with base offset {header.base_offset} has {found} good records"
            f" of {header.count}"
        )


def _rows_before(rows: array[int], count: int, offset: int) -> int:
    """How many of the rows are of records before `offset`: all of them, as a rule."""
    if count and rows[(count - 1) * kernel.REC_ROW + kernel.REC_OFFSET] < offset:
        return count
    return bisect_left(range(count), offset, key=lambda row: rows[row * kernel.REC_ROW + kernel.REC_OFFSET])


def _whole_batch(buf: Buffer, position: int) -> BatchHeader:
    header = parse_header(buf, position)
    if header.size < HEADER_SIZE or header.size > len(memoryview(buf)) - position:
        raise CorruptRecordError(f"the batch at position {position} claims {header.size} bytes")
    return header


def _record(data: bytearray, row: array[int], header: BatchHeader) -> Record:
    offset, timestamp, key, key_size, value, value_size, headers, header_count, _, end = row
    return Record(
        offset,
        header.max_timestamp if header.attributes & LOG_APPEND_TIME else timestamp,
        None if key_size < 0 else bytes(data[key : key + key_size]),
        None if value_size < 0 else bytes(data[value : value + value_size]),
        kernel.headers(data, headers, end, header_count) if header_count else [],
    )
