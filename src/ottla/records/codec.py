"""The compression codecs, by the number that a batch's attributes hold."""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
