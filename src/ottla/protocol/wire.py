"""The primitive types of Kafka's protocol, as the codec's two halves share them."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from ottla.names import Bytes
from ottla.protocol.message import Field, Message

# What `struct` calls the types of a fixed size.
FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d",
    "uuid": "16s",
}  # fmt: skip
SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "float64": 8, "uuid": 16}
ZERO_ID = bytes(16)
FEW = 8  # arrays of numbers shorter than this are read and written by a `struct` that is made once
MAX_STRING_BYTES = 32767
MAX_ELEMENTS = 100_000  # of all arrays and tags of one message; more is an attack or a mistake
MAX_UNKNOWN_TAGS = 1000  # in one place
SLICE = 200  # elements that are read or written before something else may have its turn


class DecodeError(Exception):
    """Bytes that are not the message they should be."""


class TooManyElementsError(DecodeError):
    """A message with more elements than it may have, or than the reader wanted to read at once."""


def fields_of(message_class: type[Message], version: int) -> list[Field]:
    """The fields that a version has, in the order of the wire."""
    return [f for f in message_class.FIELDS if f.since <= version <= f.until]


def is_nullable(field: Field, version: int) -> bool:
    return field.nullable_since is not None and version >= field.nullable_since


def read_varint(buffer: Bytes, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte says that it goes on; with the position after it."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError("a varint does not end within 5 bytes")


def skip_tags(buffer: Bytes, position: int, count: int, room: int) -> tuple[int, int]:
    """Pass over tags that are not known; returns the position after them and what is left of the elements."""
    end = len(buffer)
    if count > 127:
        count, position = read_varint(buffer, position, count)
    room -= count
    if room < 0:
        raise TooManyElementsError("more elements than one message may have")
    if count > MAX_UNKNOWN_TAGS:
        raise DecodeError(f"{count} tags that are not known, more than {MAX_UNKNOWN_TAGS}")
    for _ in range(count):
        first = buffer[position]
        position += 1
        if first > 127:
            _, position = read_varint(buffer, position, first)
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = read_varint(buffer, position, size)
        position += size
        if position > end:
            raise DecodeError("a tag is longer than what is left")
    return position, room


def put_varint(data: bytearray, value: int) -> None:
    while value > 127:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)


@lru_cache(maxsize=4096)
def read_id(raw: bytes) -> UUID | None:
    """An id, None for zeros. Topic ids come again and again, and making one costs a microsecond."""
    return UUID(bytes=raw) if raw != ZERO_ID else None
