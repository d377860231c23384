"""Compress and decompress the records of a batch, in bounded memory.

Two readers. `decompress` gives all of it and stops at a cap, because what a peer sends may be a bomb.
`windows` gives it in pieces, for scans over logs whose batches may be of any size. Both run on the same
piecewise decoders, which never hold more than one piece at a time: a size that the data claims allocates
nothing.

Whatever the bytes are, the only error is CorruptRecordError, or DecompressionLimitError at the cap.

A codec's library is imported with the first batch that has it: they are large, and a broker's start does without.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError, DecompressionLimitError
from ottla.records.compression.codec import MAX_FRAMES, MIN_FEED_BYTES, NEXT_FRAME_FEED_BYTES, Codec

if TYPE_CHECKING:
    from typing_extensions import Buffer

_GZIP_FORMAT = 31  # zlib's wbits for a gzip header with the largest window
_PIECE_BYTES = 1 << 20


def compress(
    codec: Codec, data: Buffer, level: int | None = None, *, lz4_legacy_checksum: bool = False
) -> bytes:
    """`level` is the codec's own scale; without one, its default. Snappy has none."""
    codec = Codec(codec)  # so that a plain number from a batch's attributes is never taken for NONE
    view = memoryview(data)
    if codec is Codec.GZIP:
        return zlib.compress(view, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_FORMAT)
    if codec is Codec.SNAPPY:
        from ottla.records.compression import xerial

        return xerial.compress(view)
    if codec is Codec.LZ4:
        from ottla.records.compression import lz4_frame

        return lz4_frame.compress(view, level, legacy_checksum=lz4_legacy_checksum)
    if codec is Codec.ZSTD:
        from ottla.records.compression import zstd_frames

        return zstd_frames.compress(view, level)
    return bytes(view)


def decompress(
    codec: Codec, data: Buffer, max_output_bytes: int, *, lz4_legacy_checksum: bool = False
) -> bytes | bytearray:
    """All of it, or DecompressionLimitError as soon as it grows past `max_output_bytes`."""
    # One byte more than the limit tells that it is passed.
    piece_bytes = min(max_output_bytes + 1, _PIECE_BYTES)
    pieces = _pieces(codec, memoryview(data), piece_bytes, max_output_bytes, lz4_legacy_checksum)
    first = next(pieces, b"")
    second = next(pieces, None)
    if second is None and isinstance(first, bytes) and len(first) <= max_output_bytes:
        return first
    whole = bytearray(first)  # grows in place: pieces that are joined in the end would be there twice
    while second is not None and len(whole) <= max_output_bytes:
        whole += second
        second = next(pieces, None)
    if len(whole) > max_output_bytes:
        raise DecompressionLimitError(f"{Codec(codec).name} data grows past {max_output_bytes} bytes")
    return whole


def windows(codec: Codec, data: Buffer, window_bytes: int) -> Iterator[bytes | memoryview]:
    """All of it in order, in pieces of 1 to `window_bytes` bytes.

    Needs memory for a few windows, or for one block of LZ4 (4 MiB at most) or snappy if that is more.
    """
    for piece in _pieces(codec, memoryview(data), window_bytes, sys.maxsize, lz4_legacy_checksum=False):
        if len(piece) <= window_bytes:
            yield piece
            continue
        view = memoryview(piece)
        for position in range(0, len(view), window_bytes):
            yield view[position : position + window_bytes]


def _pieces(
    codec: Codec, data: memoryview, piece_bytes: int, max_output_bytes: int, lz4_legacy_checksum: bool
) -> Iterator[bytes | memoryview]:
    """Decoded pieces in order: up to `piece_bytes` from gzip and zstd, one block from snappy and LZ4."""
    codec = Codec(codec)
    if codec is Codec.GZIP:
        found: Iterator[bytes | memoryview] = _gzip_pieces(data, piece_bytes)
    elif codec is Codec.SNAPPY:
        from ottla.records.compression import xerial

        found = xerial.blocks(data, max_output_bytes)
    elif codec is Codec.LZ4:
        from ottla.records.compression import lz4_frame

        found = lz4_frame.blocks(data, legacy_checksum=lz4_legacy_checksum)
    elif codec is Codec.ZSTD:
        from ottla.records.compression import zstd_frames

        found = zstd_frames.pieces(data, piece_bytes)
    else:
        found = iter((data,))
    return (piece for piece in found if piece)


def _gzip_pieces(data: memoryview, piece_bytes: int) -> Iterator[bytes]:
    most_bytes = feed_bytes = max(piece_bytes, MIN_FEED_BYTES)
    position = 0
    for _ in range(MAX_FRAMES):
        member = zlib.decompressobj(_GZIP_FORMAT)
        rest: bytes | memoryview = b""
        while not member.eof:
            if not rest:
                rest = data[position : position + feed_bytes]
                position += len(rest)
                feed_bytes = min(2 * feed_bytes, most_bytes)
            starved = not rest
            try:
                piece = member.decompress(rest, piece_bytes)
            except zlib.error as error:
                raise CorruptRecordError(f"gzip: {error}") from error
            if starved and not piece and not member.eof:
                raise CorruptRecordError("gzip data is cut")
            rest = member.unconsumed_tail
            yield piece
        position -= len(member.unused_data)
        if position == len(data):
            return
        feed_bytes = NEXT_FRAME_FEED_BYTES
    raise CorruptRecordError(f"more than {MAX_FRAMES} gzip members in a row")
