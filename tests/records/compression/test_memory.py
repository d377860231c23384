"""Memory under bombs and long streams, measured in a process of its own per case."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each stream is 512 MiB of zeros, written by hand from a few repeated bytes.
CHILD = """
import resource, struct, sys, zlib
import cramjam
from ottla.errors import DecompressionLimitError
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress, decompress, windows

MIB = 1 << 20
TOTAL = 512 * MIB


def gzip():
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    unit = deflate.compress(bytes(4 * MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(128):
        crc = zlib.crc32(bytes(4 * MIB), crc)
    header = bytes.fromhex("1f8b0800000000000003")
    return header + unit * 128 + bytes.fromhex("0300") + struct.pack("<II", crc, TOTAL)


def snappy():
    packed = compress(Codec.SNAPPY, bytes(32768))
    return packed[:16] + packed[16:] * (TOTAL // 32768)


def lz4():
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    header = bytes.fromhex("04224d18607073")
    return header + (struct.pack("<I", len(block)) + block) * 128 + bytes(4)


def zstd():
    rle_block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + bytes(1)
    return bytes.fromhex("28b52ffd0058") + rle_block * (TOTAL // 131072) + bytes.fromhex("010000")


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


codec, action = Codec[sys.argv[1].upper()], sys.argv[2]
data = globals()[sys.argv[1]]()
with open("/proc/self/clear_refs", "w") as clear:
    clear.write("5")  # the peak starts anew
before = resident()
if action == "bomb":
    try:
        decompress(codec, data, 8 * MIB)
        sys.exit("no limit")
    except DecompressionLimitError:
        pass
else:
    size = 0
    for piece in windows(codec, data, MIB):
        assert len(piece) <= MIB
        size += len(piece)
    assert size == TOTAL, size
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(peak - before)
"""


def grown_mib(codec: str, action: str) -> float:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, codec, action], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    return int(child.stdout) / (1 << 20)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_is_stopped_at_the_cap_and_takes_little_more_memory(codec: str) -> None:
    assert grown_mib(codec, "bomb") < 8 + 24


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_half_a_gibibyte_is_read_through_a_window_of_one_mebibyte(codec: str) -> None:
    assert grown_mib(codec, "windows") < 16
