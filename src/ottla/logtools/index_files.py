"""Reads index files as plain bytes, for looking up and for checking.

Never through a map: a running broker trims these files, and touching a mapped page past the new end kills the
process. The unused end of an active segment's index is zeros, which are no entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from ottla.logtools.source import SegmentFiles, open_if_there, read_if_there
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
_ZEROS = bytes(1 << 16)
_ENTRIES = {layout.INDEX: OFFSET_ENTRY, layout.TIME_INDEX: TIME_ENTRY}


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The entries of one offset or time index; keys are the first of each entry's two numbers."""

    path: str
    data: bytes
    entry: Struct
    base_offset: int
    entries: int  # before the zeros at the end
    zeros: int  # entries that are all zero, at the end
    odd_bytes: int  # behind the last whole entry

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self.entry.unpack_from(self.data, slot * self.entry.size)
        return first, second

    def floor(self, key: int) -> int:
        """The last slot whose key is at or below `key`, or -1."""
        return kernel.index_floor(self.data, self.entries, self.entry.size, key) if self.entries else -1


def load_index(fs: FileSystem, path: str, suffix: str, base_offset: int) -> IndexFile | None:
    data = read_if_there(fs, path)
    if data is None:
        return None
    entry = _ENTRIES[suffix]
    whole = len(data) // entry.size
    used = -(-_used_bytes(data, whole * entry.size) // entry.size)
    return IndexFile(path, data, entry, base_offset, used, whole - used, len(data) % entry.size)


def _used_bytes(data: bytes, end: int) -> int:
    """How much there is before the zeros at the end. Most of an active index is zeros: they go in long pieces."""
    while end >= len(_ZEROS) and data.endswith(_ZEROS, 0, end):
        end -= len(_ZEROS)
    start = max(0, end - len(_ZEROS))
    return start + len(data[start:end].rstrip(b"\0"))


@dataclass(frozen=True, slots=True)
class IndexEnd:
    """How many entries an index has, and the last of them; None where there is none."""

    entries: int
    last: tuple[int, int] | None


def find_index_end(fs: FileSystem, path: str, suffix: str) -> IndexEnd | None:
    """Without reading the index through: entries come before zeros, so that halving finds the last one.

    In a damaged index it may be another one that zeros follow."""
    file = open_if_there(fs, path)
    if file is None:
        return None
    entry = _ENTRIES[suffix]
    try:
        low, high = 0, file.size() // entry.size  # entries below `low` are used, those from `high` on are not
        last: tuple[int, int] | None = None
        probe = high - 1  # an index that is not written to any more has no zeros
        while low < high:
            data = file.pread(entry.size, probe * entry.size)
            if len(data) == entry.size and any(data):
                last, low = entry.unpack(data), probe + 1
            else:
                high = probe
            probe = (low + high) // 2
        return IndexEnd(low, last)
    finally:
        file.close()


def position_of(fs: FileSystem, segment: SegmentFiles, offset: int) -> int:
    """Where to begin to look for `offset`: the offset index's floor, or the file's start."""
    index = load_index(fs, segment.path(layout.INDEX), layout.INDEX, segment.base_offset)
    slot = index.floor(offset - segment.base_offset) if index else -1
    return index[slot][1] if index and slot >= 0 else 0


def offset_before(fs: FileSystem, segment: SegmentFiles, timestamp: int) -> int:
    """An offset before which every record is older than `timestamp`, by the time index."""
    index = load_index(fs, segment.path(layout.TIME_INDEX), layout.TIME_INDEX, segment.base_offset)
    slot = index.floor(timestamp - 1) if index else -1
    return segment.base_offset + index[slot][1] if index and slot >= 0 else segment.base_offset


def largest_timestamp(fs: FileSystem, segment: SegmentFiles) -> int | None:
    """What the last entry of the time index says: for a segment that is not written to, its largest timestamp."""
    index = load_index(fs, segment.path(layout.TIME_INDEX), layout.TIME_INDEX, segment.base_offset)
    return index[index.entries - 1][0] if index and index.entries else None
