"""LZ4 frames as Kafka writes and reads them.

A frame: magic, FLG, BD, an optional 8-byte content size, a header checksum (HC: the second byte of the
descriptor's xxHash32), then blocks of (u32 size, bytes, optional u32 checksum), then a zero size as end mark,
then an optional content checksum. The top bit of a block's size says that the block is stored as it is.

Kafka refuses linked blocks, dictionaries and reserved bits, so they are refused here too. Blocks are thus
independent and are decoded one by one, which bounds the memory by the block size (at most 4 MiB) however far
a frame grows. The content checksum is stepped over, not compared: the batch's own CRC covers the same bytes. The
content size is compared: the decoders of other clients do, and such a batch would stop them for good.

Magic 0 message sets carry a wrong HC: the first Kafka clients hashed the frame's magic too. Writers for those
must keep the mistake, readers must not look at it (`legacy_checksum`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import cramjam

from ottla.errors import CorruptRecordError

_MAGIC = b"\x04\x22\x4d\x18"
_VERSION_AND_INDEPENDENCE = 0x60  # version 1, independent blocks, and nothing else: the Java producer's FLG
_VERSION_AND_INDEPENDENCE_MASK = 0xE0
_BLOCK_CHECKSUM = 0x10
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_RESERVED = 0x03
_BD_64_KIB = 0x40
_BD_RESERVED = 0x8F
_BLOCK_BYTES = 64 * 1024
_STORED = 0x8000_0000
_END_MARK = b"\0\0\0\0"
_MAX_RATIO = 255  # one byte of an LZ4 match length stands for at most 255 bytes

_SIZE = struct.Struct("<I")
_CONTENT_BYTES = struct.Struct("<Q")


def compress(data: memoryview, level: int | None, *, legacy_checksum: bool) -> bytes:
    """One frame of 64 KiB blocks: without a level as the Java producer writes it, else at LZ4's own level."""
    if level is None:
        descriptor = bytes((_VERSION_AND_INDEPENDENCE, _BD_64_KIB))
        frame = b"".join((_MAGIC, descriptor, _header_checksum(descriptor), *_fast_blocks(data), _END_MARK))
    else:
        compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        frame = bytes(compressor.finish())
    if legacy_checksum:
        return frame[:6] + _header_checksum(frame[:6]) + frame[7:]
    return frame


def _fast_blocks(data: memoryview) -> Iterator[bytes | memoryview]:
    for position in range(0, len(data), _BLOCK_BYTES):
        block = data[position : position + _BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            yield _SIZE.pack(len(packed))
            yield packed
        else:
            yield _SIZE.pack(len(block) | _STORED)
            yield block


def blocks(data: memoryview, *, legacy_checksum: bool) -> Iterator[bytes | memoryview]:
    """The decoded blocks of the one frame that `data` must be."""
    flags, max_block_bytes, position = _read_header(data, legacy_checksum=legacy_checksum)
    content_bytes = 0
    checksum_bytes = 4 if flags & _BLOCK_CHECKSUM else 0
    while size := _u32(data, position):
        position += 4
        stored, size = size & _STORED, size & ~_STORED
        if size > max_block_bytes:
            raise CorruptRecordError(f"LZ4 block of {size} bytes in a frame of {max_block_bytes}-byte blocks")
        end = position + size + checksum_bytes
        if end > len(data):
            raise CorruptRecordError("LZ4 frame ends inside a block")
        if checksum_bytes:
            block = _decode_checked(data[position - 4 : end], max_block_bytes)
        elif stored:
            block = data[position:end]
        else:
            block = _decode(data[position:end], max_block_bytes)
        content_bytes += len(block)
        yield block
        position = end
    position += 4
    if flags & _CONTENT_CHECKSUM:
        _u32(data, position)
        position += 4
    if flags & _CONTENT_SIZE and content_bytes != _CONTENT_BYTES.unpack_from(data, 6)[0]:
        raise CorruptRecordError(f"LZ4 frame of {content_bytes} bytes names another content size")
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes after the end of an LZ4 frame")


def _read_header(data: memoryview, *, legacy_checksum: bool) -> tuple[int, int, int]:
    """(FLG, largest block, where the blocks start)."""
    if len(data) < 7 or data[:4] != _MAGIC:
        raise CorruptRecordError("not an LZ4 frame")
    flags, block_descriptor = data[4], data[5]
    if flags & _VERSION_AND_INDEPENDENCE_MASK != _VERSION_AND_INDEPENDENCE or flags & _RESERVED:
        raise CorruptRecordError(f"LZ4 frame flags {flags:#04x}: not version 1 with independent blocks")
    if block_descriptor & _BD_RESERVED or block_descriptor < _BD_64_KIB:
        raise CorruptRecordError(f"LZ4 block descriptor {block_descriptor:#04x}")
    end = 14 if flags & _CONTENT_SIZE else 6
    if len(data) <= end:
        raise CorruptRecordError("LZ4 frame ends inside its header")
    if not legacy_checksum and data[end : end + 1] != _header_checksum(bytes(data[4:end])):
        raise CorruptRecordError("LZ4 frame header checksum is wrong")
    return flags, 1 << (2 * (block_descriptor >> 4) + 8), end + 1


def _u32(data: memoryview, position: int) -> int:
    if position + 4 > len(data):
        raise CorruptRecordError("LZ4 frame has no end mark")
    value: int = _SIZE.unpack_from(data, position)[0]
    return value


def _decode(block: memoryview, max_block_bytes: int) -> memoryview:
    out = bytearray(min(max_block_bytes, _MAX_RATIO * len(block)))
    try:
        size = cramjam.lz4.decompress_block_into(block, out, output_len=len(out))
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"LZ4 block: {error}") from error
    return memoryview(out)[:size]


def _decode_checked(block: memoryview, max_block_bytes: int) -> memoryview:
    """Decode one block (with size and checksum) as a frame of its own: the frame decoder checks it."""
    out = bytearray(min(max_block_bytes, _MAX_RATIO * len(block)))
    # The decoder's own buffers follow the frame's block size, so the frame names no more than is needed.
    size_code = next(code for code in range(4, 8) if 1 << (2 * code + 8) >= len(out))
    descriptor = bytes((_VERSION_AND_INDEPENDENCE | _BLOCK_CHECKSUM, size_code << 4))
    frame = b"".join((_MAGIC, descriptor, _header_checksum(descriptor), block, _END_MARK))
    try:
        size = cramjam.lz4.decompress_into(frame, out)
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"LZ4 block: {error}") from error
    return memoryview(out)[:size]


def _header_checksum(hashed: bytes) -> bytes:
    return bytes((_xxh32_short(hashed) >> 8 & 0xFF,))


def _xxh32_short(data: bytes) -> int:
    """xxHash32 (seed 0) of less than 16 bytes: no header is longer, so the long form is not needed."""
    prime1, prime2, prime3, prime4, prime5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    words = len(data) // 4
    value = prime5 + len(data)
    for word in struct.unpack_from(f"<{words}I", data):
        value = _rotate(value + word * prime3, 17) * prime4
    for byte in data[4 * words :]:
        value = _rotate(value + byte * prime5, 11) * prime1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * prime2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * prime3 & 0xFFFFFFFF
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
