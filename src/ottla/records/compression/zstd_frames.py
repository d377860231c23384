"""zstd, by Python's own module or its backport: frames that may follow one another, decoded piece by piece."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ottla.errors import CorruptRecordError
from ottla.records.compression.codec import MAX_FRAMES, MIN_FEED_BYTES, NEXT_FRAME_FEED_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def compress(data: memoryview, level: int | None) -> bytes:
    return zstd.compress(data, level)


def pieces(data: memoryview, piece_bytes: int) -> Iterator[bytes]:
    """Decoded pieces in order, up to `piece_bytes` each."""
    most_bytes = feed_bytes = max(piece_bytes, MIN_FEED_BYTES)
    position = 0
    for _ in range(MAX_FRAMES):
        frame = zstd.ZstdDecompressor()
        while not frame.eof:
            feed = data[:0]
            if frame.needs_input:
                feed = data[position : position + feed_bytes]
                if not feed:
                    raise CorruptRecordError("zstd data is cut")
                position += len(feed)
                feed_bytes = min(2 * feed_bytes, most_bytes)
            try:
                piece = frame.decompress(feed, piece_bytes)
            except zstd.ZstdError as error:
                raise CorruptRecordError(f"zstd: {error}") from error
            yield piece
        position -= len(frame.unused_data)
        if position == len(data):
            return
        feed_bytes = NEXT_FRAME_FEED_BYTES
    raise CorruptRecordError(f"more than {MAX_FRAMES} zstd frames in a row")
