"""Goes through a log file past what is damaged: windows of good batches, and between them what is not.

Where a batch is bad, the next good one is found by its own length if that still leads to a batch, else by looking at
every byte for a header whose CRC matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.records import batch, kernel
from ottla.storage.find_batch import SMALLEST_BYTES, find_batch, is_good_batch
from ottla.storage.fs import File
from ottla.storage.scan import Scan, Window

_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a log file that are not good batches."""

    position: int
    end: int
    status: int  # kernel.TRUNCATED: a batch that is not all there
    base_offset: int  # what the header says, -1 where there is none
    size: int  # what the header says, -1 where there is none
    is_tail: bool  # nothing good follows

    @property
    def meaning(self) -> str:
        return kernel.STATUS_MEANING[self.status]


def walk(
    file: File,
    end: int,
    *,
    start: int = 0,
    flags: int = kernel.CHECK_CRC,
    min_offset: int = 0,
    max_offset: int = _MAX_OFFSET,
    window_bytes: int | None = None,
) -> Iterator[Window | Damage]:
    """Windows and damages in order, from `start` to `end`. Ends early when the file shrinks meanwhile.

    Batches that are looked for behind a damage have offsets in [min_offset, max_offset), so that one that is a
    record's value is not taken for one of the log.
    """
    while start < end:
        scan = Scan(file, end, start=start, flags=flags, window_bytes=window_bytes)
        for window in scan:
            last_offset = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET]
            # An offset beyond the limit is wrong itself, and says nothing about the batches that follow.
            if last_offset < max_offset:
                min_offset = max(min_offset, last_offset + 1)
            yield window
        start = scan.position
        if start >= end or file.size() < end:
            return
        damage = _damage(file, start, end, scan.status, min_offset, max_offset)
        yield damage
        start = damage.end


def _damage(file: File, position: int, end: int, status: int, min_offset: int, max_offset: int) -> Damage:
    header = file.pread(min(batch.HEADER_SIZE, end - position), position)
    base_offset = size = -1
    if len(header) >= batch.OVERHEAD_SIZE:
        base_offset = int.from_bytes(header[:8], "big", signed=True)
        size = int.from_bytes(header[8:12], "big", signed=True) + batch.OVERHEAD_SIZE
    claimed = position + size
    if size >= SMALLEST_BYTES and claimed < end and is_good_batch(file, claimed, end, min_offset, max_offset):
        return Damage(position, claimed, status, base_offset, size, is_tail=False)
    found = find_batch(file, position + 1, end, min_offset, max_offset)
    if found is not None:
        return Damage(position, found, status, base_offset, size, is_tail=False)
    return Damage(position, end, status, base_offset, size, is_tail=True)
