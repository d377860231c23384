"""Little that unpacks to much: valid compressed data of half a gibibyte of zeros, written from a few repeated bytes."""

from __future__ import annotations

import struct
import zlib

import cramjam
from crc32c import crc32c

from ottla.records import batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from tests.server.wire import records

MIB = 1 << 20
TOTAL_BYTES = 512 * MIB


def gzip() -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    unit = deflate.compress(bytes(4 * MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(TOTAL_BYTES // (4 * MIB)):
        crc = zlib.crc32(bytes(4 * MIB), crc)
    tail = bytes.fromhex("0300") + struct.pack("<II", crc, TOTAL_BYTES)
    return bytes.fromhex("1f8b0800000000000003") + unit * (TOTAL_BYTES // (4 * MIB)) + tail


def snappy() -> bytes:
    packed = compress(Codec.SNAPPY, bytes(32768))
    return packed[:16] + packed[16:] * (TOTAL_BYTES // 32768)


def snappy_claim() -> bytes:
    """A block without xerial's frame that claims 2 GiB."""
    return bytes.fromhex("ffffffff07") + bytes(100)


def lz4() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    blocks = (struct.pack("<I", len(block)) + block) * (TOTAL_BYTES // (4 * MIB))
    return bytes.fromhex("04224d18607073") + blocks + bytes(4)


def zstd() -> bytes:
    rle_block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + bytes(1)
    return bytes.fromhex("28b52ffd0058") + rle_block * (TOTAL_BYTES // 131072) + bytes.fromhex("010000")


BOMBS = {
    "gzip": (Codec.GZIP, gzip),
    "snappy": (Codec.SNAPPY, snappy),
    "snappy that only claims": (Codec.SNAPPY, snappy_claim),
    "lz4": (Codec.LZ4, lz4),
    "zstd": (Codec.ZSTD, zstd),
}


def bomb_batch(name: str) -> bytes:
    """A batch of one record, right in all but what its payload unpacks to."""
    codec, make = BOMBS[name]
    return with_payload(make(), codec)


def with_payload(payload: bytes, codec: Codec) -> bytes:
    """A batch around any compressed payload, its length and CRC right."""
    header = bytearray(records(b"x")[: batch.HEADER_SIZE])
    data = header + payload
    struct.pack_into(">i", data, 8, len(data) - batch.OVERHEAD_SIZE)
    struct.pack_into(">h", data, batch.ATTRIBUTES_AT, codec)
    return bytes(resealed(data))


def resealed(data: bytearray) -> bytearray:
    """With the CRC that goes with the content."""
    struct.pack_into(">I", data, batch.CRC_AT, crc32c(data[batch.ATTRIBUTES_AT :]))
    return data
