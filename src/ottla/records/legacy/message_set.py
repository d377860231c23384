"""Message sets of magic 0 and 1: the record formats before v2.

    offset i64 · size i32 · CRC-32 u32 | magic i8 · attributes i8 · [timestamp i64, magic 1] ·
    key size i32 · key · value size i32 · value

The size counts what follows it, the CRC covers what follows the CRC; a size of -1 is null. Attributes: the
codec in the low three bits, in magic 1 also 0x08 for log-append time.

A compressed message is a wrapper: its value is a compressed message set, one level deep. Inner offsets are
absolute in magic 0. In magic 1 they are relative and the wrapper's offset is that of its last record; a
wrapper offset of 0 is what some producers send and leaves them as they are. A wrapper with log-append time
overrides its records' timestamps.

CorruptRecordError: bytes that are not what they claim to be. InvalidRecordError: whole messages that break a
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ottla.errors import CorruptRecordError, InvalidRecordError
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress, decompress

if TYPE_CHECKING:
    from typing_extensions import Buffer

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_TIMESTAMP = -1

_MAX_OFFSET = 2**63 - 1
_CODEC_MASK = 0x07
_LOG_APPEND_TIME_BIT = 0x08
_WRAPPER_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

_OVERHEAD = Struct(">qiIbb")  # offset, size, CRC, magic, attributes
_LOG_OVERHEAD_BYTES = 12  # offset and size, which the size does not count
_CRC_END = 16
_TIMESTAMP = Struct(">q")
_FIELD_SIZE = Struct(">i")
_MIN_SIZE = (14, 22)  # of an empty message, by magic
_KEPT_MESSAGES = 5_000


class LegacyRecord(NamedTuple):
    """One record; magic 0 has neither timestamp (-1) nor timestamp type (0)."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None


class Message(NamedTuple):
    """One message as it stands in a set: a record, or a wrapper of records."""

    magic: int
    codec: Codec
    record: LegacyRecord


def read_message_set(buf: Buffer, start: int, end: int, *, max_output_bytes: int) -> Iterator[LegacyRecord]:
    """Every record in [start, end), wrappers opened, all CRCs checked.

    `max_output_bytes` caps what one wrapper may decompress to.
    """
    for message in read_messages(buf, start, end):
        yield from open_message(message, max_output_bytes=max_output_bytes)


def check_message_set(buf: Buffer, start: int, end: int, *, max_output_bytes: int) -> int:
    """Check all of [start, end) and count its records."""
    return sum(1 for _ in read_message_set(buf, start, end, max_output_bytes=max_output_bytes))


def read_messages(buf: Buffer, start: int, end: int) -> Iterator[Message]:
    """The messages in [start, end) with wrappers left closed, CRCs checked."""
    view = memoryview(buf)[:end]
    position = start
    while position < len(view):
        message, position = _read_message(view, position)
        yield message


def reread(buf: Buffer) -> Callable[[], Iterator[Message]]:
    """For going through all messages of `buf` more than once. Few are kept; of very many, which as objects would take
    ten times their bytes, each is read again."""
    size = len(memoryview(buf))
    head = list(islice(read_messages(buf, 0, size), _KEPT_MESSAGES))
    if len(head) < _KEPT_MESSAGES:
        return lambda: iter(head)
    return lambda: read_messages(buf, 0, size)


def open_message(message: Message, *, max_output_bytes: int) -> Iterator[LegacyRecord]:
    """The records of a message: those it wraps, which are checked before the first one comes, or itself."""
    magic, codec, wrapper = message
    if codec is Codec.NONE:
        return iter((wrapper,))
    if codec not in _WRAPPER_CODECS:
        raise InvalidRecordError(f"magic {magic} messages cannot be compressed with {codec.name}")
    if wrapper.value is None:
        raise InvalidRecordError(f"the compressed message at offset {wrapper.offset} has a null value")
    inner = reread(decompress(codec, wrapper.value, max_output_bytes, lz4_legacy_checksum=magic == 0))
    last = largest = -1
    for found in inner():
        if found.codec is not Codec.NONE:
            raise InvalidRecordError(f"the message at offset {wrapper.offset} wraps a compressed message")
        if found.magic != magic:
            raise InvalidRecordError(f"a message of magic {magic} wraps one of magic {found.magic}")
        last = found.record.offset
        largest = max(largest, last)
    if next(inner(), None) is None:
        raise InvalidRecordError(f"the compressed message at offset {wrapper.offset} holds no records")
    records = (found.record for found in inner())
    return records if magic == 0 else _adopt(wrapper, records, last, largest)


def _adopt(
    wrapper: LegacyRecord, records: Iterator[LegacyRecord], last: int, largest: int
) -> Iterator[LegacyRecord]:
    """Give records of magic 1 the offsets and the timestamps that their wrapper means."""
    if wrapper.offset and wrapper.offset < last:
        raise InvalidRecordError(f"a wrapper at offset {wrapper.offset} ends with relative offset {last}")
    base = wrapper.offset - last if wrapper.offset else 0
    if base + largest > _MAX_OFFSET:
        raise InvalidRecordError(f"a wrapper at offset {wrapper.offset} holds offsets past the largest one")
    stamped = wrapper.timestamp_type == LOG_APPEND_TIME
    return (
        record._replace(
            offset=base + record.offset,
            timestamp=wrapper.timestamp if stamped else record.timestamp,
            timestamp_type=wrapper.timestamp_type,
        )
        for record in records
    )


def _read_message(view: memoryview, position: int) -> tuple[Message, int]:
    """The message at `position` and where the next one starts."""
    if len(view) - position < _OVERHEAD.size:
        raise CorruptRecordError(f"the message at position {position} is cut short")
    offset, size, crc, magic, attributes = _OVERHEAD.unpack_from(view, position)
    if magic not in (0, 1):
        raise CorruptRecordError(f"the message at position {position} has magic {magic}, not 0 or 1")
    end = position + _LOG_OVERHEAD_BYTES + size
    if size < _MIN_SIZE[magic] or end > len(view):
        raise CorruptRecordError(f"the message at position {position} has an impossible size, {size}")
    if crc32(view[position + _CRC_END : end]) != crc:
        raise CorruptRecordError(f"the message at position {position} has a wrong CRC")
    position += _OVERHEAD.size
    timestamp, timestamp_type = NO_TIMESTAMP, CREATE_TIME
    if magic == 1:
        timestamp = _TIMESTAMP.unpack_from(view, position)[0]
        timestamp_type = LOG_APPEND_TIME if attributes & _LOG_APPEND_TIME_BIT else CREATE_TIME
        position += _TIMESTAMP.size
    key, position = _read_field(view, position, end)
    value, position = _read_field(view, position, end)
    if position != end:
        raise CorruptRecordError(f"{end - position} bytes too many in the message at offset {offset}")
    code = attributes & _CODEC_MASK
    if code > Codec.ZSTD:
        raise InvalidRecordError(f"the message at offset {offset} names an unknown codec, {code}")
    return Message(magic, Codec(code), LegacyRecord(offset, timestamp, timestamp_type, key, value)), end


def _read_field(view: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    start = position + _FIELD_SIZE.size
    if start > end:
        raise CorruptRecordError("a message ends before its key or value")
    size = _FIELD_SIZE.unpack_from(view, position)[0]
    if size == -1:
        return None, start
    if size < 0 or size > end - start:
        raise CorruptRecordError(f"a key or value of {size} bytes where {end - start} are left")
    return bytes(view[start : start + size]), start + size


def build_message_set(records: Sequence[LegacyRecord], magic: int, codec: Codec = Codec.NONE) -> bytes:
    """The message set of these records: one message each, or one wrapper around them all.

    Records of one wrapper must agree in their timestamp type, and under log-append time in their timestamp.
    """
    if codec not in _WRAPPER_CODECS:
        raise InvalidRecordError(f"magic {magic} messages cannot be compressed with {codec.name}")
    if codec is Codec.NONE or not records:
        return b"".join(_build_message(record, magic, Codec.NONE) for record in records)
    base = records[0].offset if magic == 1 else 0
    inner = b"".join(
        _build_message(record._replace(offset=record.offset - base), magic, Codec.NONE) for record in records
    )
    wrapper = LegacyRecord(
        offset=records[-1].offset,
        timestamp=max(record.timestamp for record in records),
        timestamp_type=records[0].timestamp_type,
        key=None,
        value=compress(codec, inner, lz4_legacy_checksum=magic == 0),
    )
    return _build_message(wrapper, magic, codec)


def _build_message(record: LegacyRecord, magic: int, codec: Codec) -> bytes:
    attributes = int(codec)
    timestamp = b""
    if magic == 1:
        attributes |= _LOG_APPEND_TIME_BIT if record.timestamp_type == LOG_APPEND_TIME else 0
        timestamp = _TIMESTAMP.pack(record.timestamp)
    fields = (_build_field(record.key), _build_field(record.value))
    body = b"".join((timestamp, *fields))
    crc = crc32(body, crc32(bytes((magic, attributes))))
    return _OVERHEAD.pack(record.offset, len(body) + 6, crc, magic, attributes) + body


def _build_field(field: bytes | None) -> bytes:
    return _FIELD_SIZE.pack(-1) if field is None else _FIELD_SIZE.pack(len(field)) + field
