"""The producer snapshot file (`<offset>.snapshot`): what is known of every producer just before an offset.

Version (int16, 1), CRC-32C of all that follows it (uint32), number of entries (int32), then per producer: id (int64),
epoch (int16), last sequence (int32), last offset (int64), offset delta of that batch (int32), timestamp (int64),
coordinator epoch (int32), first offset of its open transaction (int64, -1 for none). Only the last batch of a
producer is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import CorruptSnapshotError
from ottla.records import kernel

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_CRC_COVERS_FROM = 6
_ENTRY = struct.Struct(">qhiqiqiq")


class SnapshotEntry(NamedTuple):
    """One producer, as the file has it."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    data = bytearray(_HEADER.pack(_VERSION, 0, len(packed)) + b"".join(packed))
    struct.pack_into(">I", data, 2, kernel.checksum(memoryview(data)[_CRC_COVERS_FROM:]))
    return bytes(data)


def decode(data: bytes, path: str) -> list[SnapshotEntry]:
    """The entries, or CorruptSnapshotError; `path` is for its message."""
    if len(data) < _HEADER.size:
        raise CorruptSnapshotError(f"{path}: {len(data)} bytes are too few for a snapshot")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"{path}: version {version} is not known")
    if crc != kernel.checksum(memoryview(data)[_CRC_COVERS_FROM:]):
        raise CorruptSnapshotError(f"{path}: the CRC does not match")
    if count < 0 or len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"{path}: {count} producers do not fill {len(data)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :])]
