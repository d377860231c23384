"""The compression codecs a batch can name in the low three bits of its attributes."""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
