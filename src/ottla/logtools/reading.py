"""Reads and checks the records of a batch, of any format and codec, in bounded memory.

Small batches are decompressed whole. What grows past `_WHOLE_BYTES` goes through in windows, so that only a single
record larger than a window makes memory grow.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.errors import CorruptRecordError, DecompressionLimitError, InvalidRecordError
from ottla.records import batch, kernel, legacy
from ottla.records.codec import Codec
from ottla.records.compression import decompress, windows
from ottla.storage.fs import File
from ottla.storage.scan import Window

_WHOLE_BYTES = 4 << 20
_WINDOW_BYTES = 1 << 20
# One message of the old formats holds a whole set, which is opened at once.
_LEGACY_BYTES = 256 << 20
_RECORDS_AT_ONCE = 1024

Headers = list[tuple[bytes, bytes | None]]


class Record(NamedTuple):
    """One record, as a consumer would see it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Chunk(NamedTuple):
    """Records that kernel.decode() located in `data`."""

    data: bytes | bytearray | memoryview
    rows: array[int]
    records: int


def batch_bytes(file: File, window: Window, row: array[int]) -> memoryview:
    """The bytes of the batch that `row` describes; mapped if it is too large to hold."""
    position, size = row[kernel.POSITION], row[kernel.SIZE]
    if window.data is None:
        return file.map(position + size)[position:]
    start = position - window.position
    return window.data[start : start + size]


def read_records(data: memoryview, row: array[int]) -> Iterator[Record]:
    """The records of one good batch, in order; CorruptRecordError if they are not what the header promises."""
    if row[kernel.MAGIC] < batch.MAGIC_V2:
        for old in _legacy(data):
            yield Record(old.offset, old.timestamp, old.key, old.value, [])
        return
    append_time = row[kernel.MAX_TIMESTAMP] if row[kernel.ATTRIBUTES] & batch.LOG_APPEND_TIME else None
    for chunk in chunks(data, row):
        yield from _records(chunk, append_time)


def _records(chunk: Chunk, append_time: int | None) -> Iterator[Record]:
    data, rows, count = chunk
    view = memoryview(data)
    for at in range(0, count * kernel.REC_ROW, kernel.REC_ROW):
        offset, timestamp, key_at, key_size, value_at, value_size, headers_at, header_count, _, end = rows[
            at : at + kernel.REC_ROW
        ]
        yield Record(
            offset,
            timestamp if append_time is None else append_time,
            None if key_size < 0 else bytes(view[key_at : key_at + key_size]),
            None if value_size < 0 else bytes(view[value_at : value_at + value_size]),
            kernel.headers(view, headers_at, end, header_count) if header_count else [],
        )


def check_compressed(data: memoryview, row: array[int]) -> None:
    """Raise CorruptRecordError unless every record of a compressed batch is whole and in its place."""
    if row[kernel.MAGIC] < batch.MAGIC_V2:
        offsets = [old.offset for old in _legacy(data)]
        if any(later <= earlier for earlier, later in zip(offsets, offsets[1:], strict=False)):
            raise CorruptRecordError("the offsets of its messages do not grow")
        if offsets[-1] != row[kernel.LAST_OFFSET]:
            raise CorruptRecordError(f"its last message has offset {offsets[-1]}, not the wrapper's")
        return
    previous = row[kernel.BASE_OFFSET] - 1
    for _, rows, count in chunks(data, row):
        offsets = rows[kernel.REC_OFFSET : count * kernel.REC_ROW : kernel.REC_ROW].tolist()
        if sorted(set(offsets)) != offsets or offsets[0] <= previous:
            raise CorruptRecordError("the offsets of its records do not grow")
        previous = offsets[-1]
    if previous > row[kernel.LAST_OFFSET]:
        raise CorruptRecordError(f"a record has offset {previous}, past the batch's last")


def chunks(data: memoryview, row: array[int]) -> Iterator[Chunk]:
    """The records of a v2 batch in chunks; raises unless they are whole and as many as announced."""
    codec = Codec(row[kernel.ATTRIBUTES] & batch.CODEC_MASK)
    body = data[batch.HEADER_SIZE : row[kernel.SIZE]]
    found = 0
    for chunk in _located(_pieces(codec, body), row[kernel.BASE_OFFSET], row[kernel.BASE_TIMESTAMP]):
        found += chunk.records
        yield chunk
    if found != row[kernel.COUNT]:
        raise CorruptRecordError(f"{found} records where the header announces {row[kernel.COUNT]}")


def _pieces(codec: Codec, body: memoryview) -> Iterable[bytes | memoryview]:
    if codec is Codec.NONE:
        return (body,)
    if len(body) <= _WHOLE_BYTES:
        try:
            return (decompress(codec, body, _WHOLE_BYTES),)
        except DecompressionLimitError:
            pass
    return windows(codec, body, _WINDOW_BYTES)


def _located(pieces: Iterable[bytes | memoryview], base_offset: int, base_timestamp: int) -> Iterator[Chunk]:
    """Locate records in data that comes in pieces; one that is cut by a piece's end waits for the next piece."""
    rows = array("q", bytes(8 * kernel.REC_ROW * _RECORDS_AT_ONCE))
    rest = b""
    for piece in pieces:
        data: bytes | bytearray | memoryview = bytearray(rest) + piece if rest else piece
        at, status = 0, kernel.OK
        while at < len(data) and status == kernel.OK:
            count, at, status = kernel.decode(data, at, len(data), base_offset, base_timestamp, rows)
            if count:
                yield Chunk(data, rows, count)
        if status == kernel.BAD_RECORD:
            raise CorruptRecordError("a record is malformed")
        rest = bytes(memoryview(data)[at:])
    if rest:
        raise CorruptRecordError("the last record is cut short")


def _legacy(data: memoryview) -> list[legacy.LegacyRecord]:
    try:
        return list(legacy.read_message_set(data, 0, len(data), max_output_bytes=_LEGACY_BYTES))
    except InvalidRecordError as error:
        raise CorruptRecordError(str(error)) from error
