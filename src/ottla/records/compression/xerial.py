"""Snappy as Kafka's clients write it: snappy-java's block stream, or one bare block.

The stream: a 16-byte header (magic, version, oldest compatible version), then blocks of (i32 length, raw
snappy). Java writes it with 32 KiB blocks; librdkafka writes one raw block without any header, so readers
look for the magic. Streams can follow each other: a header may stand where a block is due.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import cramjam

from ottla.errors import CorruptRecordError, DecompressionLimitError

_MAGIC = b"\x82SNAPPY\0"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)
_BLOCK_BYTES = 32 * 1024
_MAX_RATIO = 22  # the best a snappy copy does is 64 bytes from 3

_LENGTH = struct.Struct(">i")


def compress(data: memoryview) -> bytes:
    parts = [_HEADER]
    for position in range(0, len(data), _BLOCK_BYTES):
        packed = bytes(cramjam.snappy.compress_raw(data[position : position + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(packed)), packed)
    return b"".join(parts)


def blocks(data: memoryview, max_output_bytes: int) -> Iterator[memoryview]:
    """The decoded blocks. A block names its size, so one past the cap is refused before it costs memory."""
    if data[:8] != _MAGIC:
        yield _decode(data, max_output_bytes)
        return
    position = 0
    while position < len(data):
        if data[position : position + 8] == _MAGIC:
            position += len(_HEADER)
            if position > len(data) or _LENGTH.unpack_from(data, position - 8)[0] < 1:
                raise CorruptRecordError("snappy stream header is cut or of an unknown version")
            continue
        if position + 4 > len(data):
            raise CorruptRecordError("snappy stream ends inside a block length")
        length = _LENGTH.unpack_from(data, position)[0]
        position += 4
        if length < 0 or length > len(data) - position:
            raise CorruptRecordError(f"snappy block of {length} bytes where {len(data) - position} are left")
        block = _decode(data[position : position + length], max_output_bytes)
        max_output_bytes -= len(block)
        position += length
        yield block


def _decode(block: memoryview, max_output_bytes: int) -> memoryview:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _MAX_RATIO * len(block):
            raise CorruptRecordError(f"snappy block of {len(block)} bytes says it holds {size}")
        if size > max_output_bytes:
            raise DecompressionLimitError(
                f"SNAPPY block of {size} bytes, {max_output_bytes} more are allowed"
            )
        out = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"snappy block: {error}") from error
    return memoryview(out)
