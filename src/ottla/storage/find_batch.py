"""Finds good batches behind bytes that are none: by looking at every byte for a header whose CRC matches."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from ottla.records import batch, check_kernel, kernel
from ottla.storage.fs import File
from ottla.storage.scan import LARGE_BATCH_BYTES, Scan

SMALLEST_BYTES = 26  # an empty message of magic 0
_SEARCH_BYTES = 1 << 20


class Found(NamedTuple):
    """Good batches in a piece of a log."""

    batches: int
    end_offset: int  # one past the last offset in them


def find_batch(file: File, start: int, end: int, min_offset: int, max_offset: int) -> int | None:
    """Where the next good batch begins, or None."""
    while start + SMALLEST_BYTES <= end:
        data = file.pread(min(_SEARCH_BYTES, end - start), start)
        at = 0
        while True:
            at = check_kernel.find_header(data, at, len(data), min_offset, max_offset, end - start - at)
            if at + SMALLEST_BYTES > len(data):
                break
            if is_good_batch(file, start + at, end, min_offset, max_offset):
                return start + at
            at += 1
        if at == 0:  # the file became shorter
            return None
        start += at
    return None


def is_good_batch(file: File, position: int, end: int, min_offset: int, max_offset: int) -> bool:
    """Whether a whole batch begins at `position`, with a CRC that matches and an offset in the range."""
    head = file.pread(batch.OVERHEAD_SIZE, position)
    size = int.from_bytes(head[8:12], "big", signed=True) + batch.OVERHEAD_SIZE
    offset = int.from_bytes(head[:8], "big", signed=True)
    if (
        not SMALLEST_BYTES <= size <= min(end - position, LARGE_BATCH_BYTES)
        or not min_offset <= offset < max_offset
    ):
        return False
    data = file.pread(size, position)
    rows = array("q", bytes(8 * kernel.ROW))
    return kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)[0] == 1


def good_batches(file: File, start: int, end: int, min_offset: int, max_offset: int) -> Found:
    """The whole batches with good CRCs and growing offsets in the range, past whatever lies between them."""
    count = 0
    position = find_batch(file, start, end, min_offset, max_offset)
    while position is not None:
        scan = Scan(file, end, start=position)
        for window in scan:
            in_order = kernel.rows_in_order(window.rows, window.count, min_offset)
            count += in_order
            if in_order:
                last = window.rows[(in_order - 1) * kernel.ROW + kernel.LAST_OFFSET]
                min_offset = max(min_offset, last + 1)
        position = find_batch(file, max(scan.position, position + 1), end, min_offset, max_offset)
    return Found(count, min_offset)
