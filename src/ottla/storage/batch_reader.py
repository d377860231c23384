"""Reads and checks the records of a batch, of any format and codec, in bounded memory.

Small batches are decompressed whole. What grows past `_WHOLE_BYTES` goes through in windows, so that only a single
record larger than a window makes memory grow.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise

from ottla.errors import CorruptRecordError, DecompressionLimitError, InvalidRecordError
from ottla.records import batch, kernel
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import decompress, windows
from ottla.records.legacy import message_set
from ottla.records.record import Record
from ottla.records.record import read_records as read_v2_records
from ottla.storage.fs import File
from ottla.storage.scan import Window

_WHOLE_BYTES = 4 << 20
_WINDOW_BYTES = 1 << 20
# One message of the old formats holds a whole set, which is opened at once.
_MESSAGE_SET_BYTES = 256 << 20
_RECORDS_AT_ONCE = 1024


def batch_bytes(file: File, window: Window, row: array[int]) -> memoryview:
    """The bytes of the batch that `row` describes; mapped if it is too large to hold."""
    position, size = row[kernel.POSITION], row[kernel.SIZE]
    if window.data is None:
        return file.map(position + size)[position:]
    start = position - window.position
    return window.data[start : start + size]


def read_records(data: memoryview, row: array[int]) -> Iterator[Record]:
    """The records of one good batch, in order; CorruptRecordError if they are not what the header promises."""
    if row[kernel.MAGIC] == batch.MAGIC_V2:
        return read_v2_records(data)
    return (Record(old.offset, old.timestamp, old.key, old.value, []) for old in _message_set(data))


def check_compressed(data: memoryview, row: array[int]) -> None:
    """Raise CorruptRecordError unless every record of a compressed batch is whole and in its place."""
    if row[kernel.MAGIC] < batch.MAGIC_V2:
        _check_message_set(data, row)
        return
    codec = Codec(row[kernel.ATTRIBUTES] & batch.CODEC_MASK)
    body = data[batch.HEADER_SIZE : row[kernel.SIZE]]
    if len(body) <= _WHOLE_BYTES:
        try:
            records = decompress(codec, body, _WHOLE_BYTES)
        except DecompressionLimitError:
            pass
        else:
            _check_whole(records, row)
            return
    _check_in_windows(codec, body, row)


def _check_whole(records: bytes | bytearray, row: array[int]) -> None:
    count, base_timestamp = row[kernel.COUNT], row[kernel.BASE_TIMESTAMP]
    status, bad, *_ = kernel.check_records(records, 0, len(records), count, base_timestamp, dense=False)
    if status != kernel.OK:
        where = f" (record {bad} of {count})" if bad >= 0 else ""
        raise CorruptRecordError(kernel.STATUS_MEANING[status] + where)


def _check_in_windows(codec: Codec, body: memoryview, row: array[int]) -> None:
    """A record that is cut by a window's end waits for the next window."""
    rows = array("q", bytes(8 * kernel.REC_ROW * _RECORDS_AT_ONCE))
    data = bytearray()
    found, previous = 0, row[kernel.BASE_OFFSET] - 1
    for piece in windows(codec, body, _WINDOW_BYTES):
        data += piece
        at, status = 0, kernel.OK
        while at < len(data) and status == kernel.OK:
            count, at, status = kernel.decode(
                data, at, len(data), row[kernel.BASE_OFFSET], row[kernel.BASE_TIMESTAMP], rows
            )
            offsets = rows[kernel.REC_OFFSET : count * kernel.REC_ROW : kernel.REC_ROW].tolist()
            if offsets and (offsets[0] <= previous or sorted(set(offsets)) != offsets):
                raise CorruptRecordError("the offsets of its records do not grow")
            found, previous = found + count, offsets[-1] if offsets else previous
        if status == kernel.BAD_RECORD:
            raise CorruptRecordError(f"record {found} of {row[kernel.COUNT]} is malformed")
        del data[:at]
    if data or found != row[kernel.COUNT] or previous > row[kernel.LAST_OFFSET]:
        raise CorruptRecordError(f"{found} records up to offset {previous} are not what the header announces")


def _check_message_set(data: memoryview, row: array[int]) -> None:
    offsets = [old.offset for old in _message_set(data)]
    if any(later <= earlier for earlier, later in pairwise(offsets)):
        raise CorruptRecordError("the offsets of its messages do not grow")
    if offsets[-1] != row[kernel.LAST_OFFSET]:
        raise CorruptRecordError(f"its last message has offset {offsets[-1]}, not the wrapper's")


def _message_set(data: memoryview) -> list[message_set.LegacyRecord]:
    try:
        return list(message_set.read_message_set(data, 0, len(data), max_output_bytes=_MESSAGE_SET_BYTES))
    except InvalidRecordError as error:
        raise CorruptRecordError(str(error)) from error
