"""The record formats before v2, and the ways between them and v2.

message_set.py has the formats themselves. Old producers send message sets, which are stored as v2 (`to_v2`).
Old consumers get message sets made from v2 (`from_v2`): offsets, codec, keys, values and (magic 1) timestamps
stay, headers and control batches have no place there and are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCompressionTypeError,
)
from ottla.records import batch, kernel
from ottla.records.builder import seal_batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import decompress
from ottla.records.legacy.message_set import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    LegacyRecord,
    Message,
    build_message_set,
    check_message_set,
    open_message,
    read_message_set,
    read_messages,
    reread,
)
from ottla.records.record import read_records

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "NO_BATCH",
    "NO_TIMESTAMP",
    "LegacyRecord",
    "batch_size",
    "build_message_set",
    "check_message_set",
    "from_v2",
    "read_message_set",
    "to_v2",
    "whole_batches_size",
    "whole_messages",
]

_LENGTH = Struct(">i")
_LENGTH_AT = 8
_MIN_LENGTH = 14  # of the smallest message that ever was
NO_BATCH: Final = -1
_MAX_INT64 = 2**63 - 1
_AT_ONCE = 1000  # records that are there as objects


def to_v2(buf: Buffer, *, max_output_bytes: int, codec: Codec | None = None) -> bytearray:
    """One v2 batch, base offset 0, of the message set that a producer sent.

    A compressed message must be alone in its set, unless plain ones follow: what is last decides, as in Kafka.
    Its offsets are 0, 1, 2, ... whatever the set said. `codec` is the batch's; None keeps the set's own.
    `max_output_bytes` caps what a compressed set may unpack to.
    """
    messages = reread(buf)
    source = _check_set(messages())
    made, count, first, latest = bytearray(batch.HEADER_SIZE), 0, NO_TIMESTAMP, NO_TIMESTAMP
    records = (
        record
        for message in messages()
        for record in open_message(message, max_output_bytes=max_output_bytes)
    )
    while some := list(islice(records, _AT_ONCE)):
        if not count:
            first = some[0].timestamp
        for record in some:
            _check_time(record, first)
        latest = max(latest, max(record.timestamp for record in some))
        plain = [(record.timestamp, record.key, record.value, ()) for record in some]
        kernel.encode_records(made, plain, first, range(count, count + len(some)))
        count += len(some)
    seal_batch(made, count, first, codec=source if codec is None else codec, latest_time=latest)
    return made


def _check_set(messages: Iterator[Message]) -> Codec:
    """Whether they may be in one set; the codec that it has."""
    magics: set[int] = set()
    count, codec = 0, Codec.NONE
    for message in messages:
        magics.add(message.magic)
        count, codec = count + 1, message.codec
    if not count:
        raise InvalidRecordError("a message set without messages")
    if len(magics) > 1:
        raise InvalidRecordError("a message set with messages of magic 0 and of magic 1")
    if count > 1 and codec is not Codec.NONE:
        raise InvalidRecordError("a compressed message that is not alone in its set")
    return codec


def _check_time(record: LegacyRecord, first: int) -> None:
    if record.timestamp_type == LOG_APPEND_TIME:
        raise InvalidTimestampError("a producer must not set the timestamp type to log-append time")
    if record.timestamp < NO_TIMESTAMP:
        raise InvalidTimestampError(f"timestamp {record.timestamp} is negative")
    if record.timestamp - first > _MAX_INT64:
        raise InvalidTimestampError(f"timestamp {record.timestamp} is too far from the first one")


def from_v2(buf: Buffer, magic: int, *, max_output_bytes: int, first_offset: int = 0) -> bytes:
    """The message set of magic 0 or 1 that stands for the whole batches in `buf`.

    Batches that are old enough already are copied. Records before `first_offset` are left out of uncompressed
    batches, because some old consumers do not skip them themselves. The result is empty if only control
    batches are there. zstd has no place in these formats: UnsupportedCompressionTypeError.
    `max_output_bytes` caps what one batch may unpack to.
    """
    found, _ = from_v2_within(
        buf, magic, max_output_bytes=max_output_bytes, first_offset=first_offset, max_records=sys.maxsize
    )
    return found


def from_v2_within(
    buf: Buffer, magic: int, *, max_output_bytes: int, first_offset: int, max_records: int
) -> tuple[bytes, int]:
    """The same of no more than `max_records` records; how many there are.

    It ends before the batch that has more than are left, and if that is the first, within it, counted from
    `first_offset` on.
    """
    view = memoryview(buf)
    parts: list[bytes | memoryview] = []
    left = max_records
    for position, size in _batches(view):
        count = _count(view, position, size)
        if count > left and left < max_records:
            break
        found_magic = view[position + batch.MAGIC_AT]
        if found_magic <= magic:
            parts.append(view[position : position + size])
            continue
        if found_magic == batch.MAGIC_V2:
            codec, records = _read_v2(
                view, position, size, max_output_bytes, first_offset if count > left else 0, left
            )
        else:
            (message,) = read_messages(view, position, position + size)
            codec = message.codec
            records = list(open_message(message, max_output_bytes=max_output_bytes))
        if codec is Codec.NONE:
            records = [record for record in records if record.offset >= first_offset]
        parts.append(build_message_set(records, magic, codec))
        left -= count
        if left <= 0:
            break
    return b"".join(parts), max_records - left


def _count(view: memoryview, position: int, size: int) -> int:
    if view[position + batch.MAGIC_AT] != batch.MAGIC_V2 or size < batch.HEADER_SIZE:
        return 1
    return max(1, batch.parse_header(view, position).count)


def batch_size(records: memoryview, position: int) -> int:
    """The size of the batch, or message, at `position`: 0 if there is no whole one, NO_BATCH if it can be none."""
    left = len(records) - position
    if left < batch.OVERHEAD_SIZE:
        return 0
    length: int = _LENGTH.unpack_from(records, position + _LENGTH_AT)[0]
    if length < _MIN_LENGTH:
        return NO_BATCH
    if left <= batch.MAGIC_AT:
        return 0
    if records[position + batch.MAGIC_AT] > batch.MAGIC_V2:
        return NO_BATCH
    size = length + batch.OVERHEAD_SIZE
    return size if size <= left else 0


def whole_messages(buf: Buffer) -> memoryview:
    """The messages of an old set without one that is cut off at the end; all of it, if a message can be none."""
    records, position = memoryview(buf), 0
    while size := batch_size(records, position):
        if size == NO_BATCH:
            return records
        position += size
    return records[:position]


def whole_batches_size(buf: Buffer) -> int:
    """How many bytes of `buf` are whole batches, or messages, of any magic: what is cut is at the end."""
    view, position = memoryview(buf), 0
    while len(view) - position > batch.MAGIC_AT:
        size = _LENGTH.unpack_from(view, position + _LENGTH_AT)[0] + batch.OVERHEAD_SIZE
        if not batch.MAGIC_AT < size <= len(view) - position:
            break
        position += size
    return position


def _batches(view: memoryview) -> Iterator[tuple[int, int]]:
    """Position and size of each batch, or message, of any magic."""
    position, end = 0, len(view)
    while position < end:
        if end - position <= batch.MAGIC_AT:
            raise CorruptRecordError(f"the batch at position {position} is cut short")
        size = _LENGTH.unpack_from(view, position + _LENGTH_AT)[0] + batch.OVERHEAD_SIZE
        if size <= batch.MAGIC_AT or size > end - position:
            raise CorruptRecordError(f"the batch at position {position} has an impossible size, {size}")
        yield position, size
        position += size


def _read_v2(
    view: memoryview, position: int, size: int, max_output_bytes: int, first_offset: int, max_records: int
) -> tuple[Codec, list[LegacyRecord]]:
    """The codec and the first records of the v2 batch from `first_offset` on, none if it is a control batch."""
    if size < batch.HEADER_SIZE:
        raise CorruptRecordError(f"the batch at position {position} has an impossible size, {size}")
    header = batch.parse_header(view, position)
    # What is built from it gets a CRC of its own, so this is the last chance to see that it is damaged.
    if batch.compute_crc(view, position, size) != header.crc:
        raise CorruptRecordError(f"the batch at offset {header.base_offset} has a wrong CRC")
    if header.attributes & batch.CODEC_MASK > Codec.ZSTD:
        raise CorruptRecordError(f"the batch at offset {header.base_offset} names an unknown codec")
    if header.is_control:
        return Codec.NONE, []
    if header.codec is Codec.ZSTD:
        raise UnsupportedCompressionTypeError(
            f"the zstd batch at offset {header.base_offset} cannot be read in magic 0 or 1"
        )
    # Unpacked under the cap first: one record may be as large as the whole batch.
    body = decompress(header.codec, view[position + batch.HEADER_SIZE : position + size], max_output_bytes)
    plain = header._replace(
        length=batch.HEADER_SIZE - batch.OVERHEAD_SIZE + len(body),
        attributes=header.attributes & ~batch.CODEC_MASK,
    )
    found = read_records(batch.HEADER.pack(*plain) + body, first_offset=first_offset)
    return header.codec, [
        LegacyRecord(record.offset, record.timestamp, header.timestamp_type, record.key, record.value)
        for record in islice(found, max_records)
    ]
