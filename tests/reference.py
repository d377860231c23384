"""The v2 format once more, slow and plain, to hold the kernel against."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
FIELDS = (
    "base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count",
)  # fmt: skip
Pairs = Sequence[tuple[bytes, bytes | None]]


def varint(number: int) -> bytes:
    """Zigzag, any size."""
    bits = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    offset_delta: int = 0,
    time_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Pairs = (),
) -> bytes:
    body = (
        b"\0" + varint(time_delta) + varint(offset_delta) + field(key) + field(value) + varint(len(headers))
    )
    return sized(body + b"".join(field(name) + field(data) for name, data in headers))


def sized(body: bytes) -> bytes:
    return varint(len(body)) + body


def batch(records: bytes, count: int = 1, /, **changes: Any) -> bytearray:
    """A batch around `records` whose header says what `changes` say, with a right CRC."""
    delta = max(0, count - 1)
    numbers = (0, 49 + len(records), 0, 2, 0, 0, delta, 1000, 1000, -1, -1, -1, count)
    fields = dict(zip(FIELDS, numbers, strict=True))
    assert changes.keys() <= fields.keys()
    data = bytearray(HEADER.pack(*(fields | changes).values()) + records)
    if "crc" not in changes:
        fix_crc(data)
    return data


def fix_crc(data: bytearray, position: int = 0, size: int | None = None) -> None:
    end = len(data) if size is None else position + size
    struct.pack_into(">I", data, position + 17, crc32c.crc32c(bytes(data[position + 21 : end])))


def legacy_message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = -1,
    attributes: int = 0,
) -> bytes:
    """A magic 0 or 1 message with a right CRC."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for data in (key, value):
        body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def headers_in(data: bytes) -> list[dict[str, int]]:
    """Every v2 batch header in `data`, which must be whole batches."""
    found, position = [], 0
    while position < len(data):
        values = dict(zip(FIELDS, HEADER.unpack_from(data, position), strict=True))
        found.append(values | {"position": position, "size": values["length"] + 12})
        position += values["length"] + 12
    return found
