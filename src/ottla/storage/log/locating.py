"""Finds the batch of an offset in a log file, from the place that the index tells on.

The index is sparse, and may be missing: then the way is long. Whoever must not be kept for long takes a part of it, and
leaves the rest to a thread, which remembers where it came to as a shortcut.
"""

from __future__ import annotations

import contextlib
import sys
from bisect import bisect_right, insort
from functools import partial
from typing import Final, NamedTuple

from ottla.errors import CorruptRecordError
from ottla.names import Bytes
from ottla.records import kernel
from ottla.storage.fs import ColdPagesError, File, FileSystem
from ottla.storage.log.log_slice import READ_AHEAD_BYTES, cut_from_outside, warm

# A step reads this much at once: most batches that follow an index entry begin within it.
LOOKUP_BYTES: Final = 4096 + 64
# Whoever must not be kept takes so many steps, a fraction of a millisecond. With the usual index there are one or two.
_MAX_STEPS: Final = 64
_MAX_SHORTCUTS: Final = 256

# (offset, where the first batch is that ends there or later), in order, of one file. Who cuts the file begins another
# list: what a thread finds meanwhile goes into the old one.
Shortcuts = list[tuple[int, int]]


class Located(NamedTuple):
    """Where a batch lies."""

    position: int
    size: int
    base_offset: int
    last_offset: int


def locate(
    file: File,
    file_size: int,
    indexed_offset: int,
    position: int,
    offset: int,
    shortcuts: Shortcuts,
    cold_fs: FileSystem | None,
) -> Located | None:
    """The first batch whose last offset is at or above `offset`; None when there is none.

    The index says that the batch at `position` ends with `indexed_offset`. With `cold_fs`, which a thread can go on
    with, ColdPagesError where it would take long.
    """
    if shortcuts:
        slot = bisect_right(shortcuts, (offset, sys.maxsize)) - 1
        if slot >= 0 and shortcuts[slot][1] > position:
            indexed_offset, position = -1, shortcuts[slot][1]
    steps = 0
    while position < file_size:
        steps += 1
        if steps > _MAX_STEPS and cold_fs is not None:
            raise ColdPagesError(
                partial(find_far, cold_fs, file.path, position, file_size, offset, shortcuts)
            )
        chunk = _read(file, position, file_size, cold_fs)
        if position and indexed_offset >= 0:
            if kernel.find_batch(chunk, 0, len(chunk), 0)[4] != indexed_offset:
                position, indexed_offset = 0, -1  # the index lies: read from the start, slow but right
                continue
            indexed_offset = -1
        status, at, size, base_offset, last_offset = kernel.find_batch(chunk, 0, len(chunk), offset)
        if status == kernel.OK:
            is_whole = position + at + size <= file_size
            return Located(position + at, size, base_offset, last_offset) if is_whole else None
        if status != kernel.TRUNCATED:
            raise CorruptRecordError(
                f"{file.path}: at position {position + at}: {kernel.STATUS_MEANING[status]}"
            )
        if at == 0:
            return None
        position += at
    return None


def _read(file: File, position: int, file_size: int, cold_fs: FileSystem | None) -> Bytes:
    wanted = min(LOOKUP_BYTES, file_size - position)
    if cold_fs is None:
        data = file.pread(wanted, position)
        if len(data) < wanted:
            raise cut_from_outside(file, file_size)
        return data
    cached = file.pread_cached(wanted, position)
    if cached is None:
        raise ColdPagesError(partial(warm, cold_fs, file.path, position, READ_AHEAD_BYTES))
    return cached


def find_far(fs: FileSystem, path: str, position: int, size: int, offset: int, shortcuts: Shortcuts) -> None:
    """Go through the batches from `position` on, and remember where the first is that ends at `offset` or later."""
    with contextlib.suppress(FileNotFoundError):
        file = fs.open(path)
        try:
            buffer = memoryview(bytearray(min(READ_AHEAD_BYTES, size - position)))
            while position < size:
                have = file.pread_into(buffer[: size - position], position)
                status, at, *_ = kernel.find_batch(buffer, 0, have, offset)
                position += at
                if status != kernel.TRUNCATED or at == 0:  # found, or damaged: whoever asked will see
                    break
        finally:
            file.close()
        if len(shortcuts) >= _MAX_SHORTCUTS:
            del shortcuts[::2]
        insort(shortcuts, (offset, position))
