"""Splits a segment whose offsets do not fit its indexes.

A segment holds offsets up to its base + 2^31 - 1, because indexes store them relative to it in 32 bits. Old versions
of Kafka could write beyond that. Such a segment is copied, batch by batch, into several that keep the rule, and they
take its place. They come without indexes: whoever loads them next builds those, and notices nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ottla.config import LogConfig
from ottla.errors import StorageError
from ottla.records import batch, kernel
from ottla.storage import layout
from ottla.storage.fs import File, FileSystem
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.log.swap import swap_in
from ottla.storage.scan import Scan


class SegmentOverflowError(StorageError):
    """A segment with offsets past its range; it can be split."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(
            f"{segment.path(layout.LOG)} holds offsets past its base + 2^31 - 1; it must be split"
        )
        self.segment = segment


def check_range(segment: Segment, end_offset: int) -> None:
    """Raise unless all offsets below `end_offset` fit the segment."""
    if end_offset - 1 - segment.base_offset > MAX_RELATIVE_OFFSET:
        raise SegmentOverflowError(segment)


def split(fs: FileSystem, directory: str, segment: Segment, config: LogConfig) -> list[Segment]:
    """Replace `segment` by segments that keep the rule; its files are left marked .deleted."""
    bases: list[int] = []
    target: File | None = None
    size = 0
    for base_offset, last_offset, data in _batches(segment):
        if target is None or last_offset - bases[-1] > MAX_RELATIVE_OFFSET:
            if target is not None:
                target.close()
            bases.append(base_offset if bases else segment.base_offset)
            path = f"{directory}/{layout.segment_file(bases[-1], layout.LOG, layout.CLEANED)}"
            target, size = fs.open(path, create=True), 0
            target.truncate(0)
        target.pwrite(data, size)
        size += len(data)
    if target is not None:
        target.close()
    new = [Segment(fs, directory, base, config, marker=layout.CLEANED) for base in bases]
    segment.close()
    swap_in(fs, directory, new, [segment])
    return new


def _batches(segment: Segment) -> Iterator[tuple[int, int, memoryview | bytes]]:
    """(base offset of a segment that it begins, last offset, bytes) of each batch."""
    expected = segment.base_offset
    for window in Scan(segment.file, segment.file.size(), flags=0):
        for at in range(
            0, kernel.rows_in_order(window.rows, window.count, expected) * kernel.ROW, kernel.ROW
        ):
            row = window.rows[at : at + kernel.ROW]
            start = row[kernel.POSITION] - window.position
            data = (
                segment.file.pread(row[kernel.SIZE], row[kernel.POSITION])
                if window.data is None
                else window.data[start : start + row[kernel.SIZE]]
            )
            yield _new_base(row, expected), row[kernel.LAST_OFFSET], data
            expected = row[kernel.LAST_OFFSET] + 1


def _new_base(row: array[int], expected: int) -> int:
    """Where a segment that begins with this batch starts: without a gap before it, if that leaves it in range."""
    last_offset = row[kernel.LAST_OFFSET]
    if last_offset - expected <= MAX_RELATIVE_OFFSET:
        return expected
    # An old compressed message says only its last offset.
    is_v2 = row[kernel.MAGIC] == batch.MAGIC_V2
    return row[kernel.BASE_OFFSET] if is_v2 else last_offset - MAX_RELATIVE_OFFSET
