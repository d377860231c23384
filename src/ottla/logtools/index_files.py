"""Reads whole index files as plain bytes, for checking every entry; storage/indexes/foreign_index.py looks single ones
up.

Never through a map: a running broker trims these files, and touching a mapped page past the new end kills the
process. The unused end of an active segment's index is zeros, which are no entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from ottla.logtools.listing import read_if_there
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.indexes import offset_index, time_index

_ZEROS = bytes(1 << 16)
_ENTRIES = {layout.INDEX: offset_index.ENTRY, layout.TIME_INDEX: time_index.ENTRY}


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
