"""Checks the large batches of a long segment on several threads at once.

Reading and taking CRCs lets other threads run, and the headers alone say where the batches begin: so the file is cut
into parts at batches, each part is scanned on its own, and the rows come back in order. Small batches are left to one
thread: their rows would fill the memory, and finding where they begin takes as long as checking them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from ottla.records import batch, kernel
from ottla.runtime import Runtime
from ottla.storage.fs import File
from ottla.storage.scan import Scan, Window

PART_BYTES = 32 << 20
LARGE_BYTES = 16 << 10  # of a batch, at the mean
_FIRST_BATCHES = 64  # are no measure of the mean yet
_WORKERS = 2


class _Part(NamedTuple):
    start: int
    end: int


def scan_whole(runtime: Runtime, file: File, size: int, flags: int) -> Iterator[Window]:
    """The windows of `Scan(file, size, flags=flags)`; some of them without their data."""

    def work(part: _Part) -> tuple[array[int], bool]:
        rows = array("q")
        scan = Scan(file, part.end, start=part.start, flags=flags)
        for window in scan:
            rows += window.rows[: window.count * kernel.ROW]
        return rows, scan.position == part.end

    position = 0
    if size >= 2 * PART_BYTES:
        for part, result, error in sorted(
            runtime.map_blocking(work, _parts(file, size), _WORKERS), key=lambda found: found[0]
        ):
            if error is not None:
                raise error
            assert result is not None
            rows, is_whole = result
            if rows:
                yield Window(rows, len(rows) // kernel.ROW, None, part.start)
            if not is_whole:
                return
            position = part.end
    yield from Scan(file, size, start=position, flags=flags)


def _parts(file: File, size: int) -> Iterator[_Part]:
    """Pieces from the beginning on that end where a batch does, as far as batches are large."""
    start = position = count = 0
    while position >= (count - _FIRST_BATCHES) * LARGE_BYTES:
        if position - start >= PART_BYTES:
            yield _Part(start, position)
            start = position
        head = file.pread(batch.OVERHEAD_SIZE, position)
        length = int.from_bytes(head[8:], "big", signed=True)
        if length <= 0 or length > size - position - batch.OVERHEAD_SIZE:
            break  # the end, or the scan of what is left says what is wrong here
        position += length + batch.OVERHEAD_SIZE
        count += 1
    if position > start:
        yield _Part(start, position)
