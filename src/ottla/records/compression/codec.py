"""The compression codecs, by the number that a batch's attributes hold, and in what pieces data is fed to them."""

from __future__ import annotations

from enum import IntEnum

MIN_FEED_BYTES = 64 * 1024
# gzip members and zstd frames may follow each other. No client writes more than one, but each costs a decoder
# and a copy of the bytes fed past its end: many tiny ones must not eat seconds.
MAX_FRAMES = 4096
NEXT_FRAME_FEED_BYTES = 4096


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
