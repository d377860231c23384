"""The time index (`.timeindex`): from which offset on a timestamp may be found.

An entry is 12 bytes, big-endian: a timestamp (int64) and an offset relative to the segment's base (int32). It says
that no record before that offset has a larger timestamp. Both columns only grow.
"""

from __future__ import annotations

import struct

from ottla.errors import CorruptIndexError
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.sparse_index import SparseIndex

ENTRY = struct.Struct(">qi")


class TimeIndex(SparseIndex):
    """Maps timestamps to offsets in one segment."""

    ENTRY_SIZE = 12

    __slots__ = ("_last_offset", "_last_timestamp")

    def __init__(
        self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, *, writable: bool = False
    ) -> None:
        super().__init__(fs, path, base_offset, max_bytes, writable=writable)
        self._last_timestamp = -1
        self._last_offset = base_offset

    @property
    def room(self) -> int:
        # One slot is kept for the entry that a roll writes.
        return self._capacity - 1 - self.entries

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        return (self._last_timestamp, self._last_offset) if self.entries else (-1, self.base_offset)

    def _note_last(self, entry: bytes | bytearray | None) -> None:
        timestamp, relative = ENTRY.unpack(entry) if entry else (-1, 0)
        self._last_timestamp, self._last_offset = timestamp, self.base_offset + relative

    def _key(self, entry: bytes, at: int = 0) -> int:
        timestamp: int = ENTRY.unpack_from(entry, at)[0]
        return timestamp

    @property
    def _last_key(self) -> int:
        return self._last_timestamp

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = ENTRY.unpack(self.entry_bytes(slot))
        return timestamp, self.base_offset + relative

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or below `timestamp`; (-1, base offset) when there is none."""
        slot = self._floor_slot(timestamp)
        return self.entry(slot) if slot >= 0 else (-1, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if its timestamp is new. Falling offsets were once written after a race and must never be."""
        if self.entries and (timestamp <= self._last_timestamp or offset <= self._last_offset):
            return
        if timestamp < 0:
            return
        self._write_entry(ENTRY.pack(timestamp, offset - self.base_offset))
        self._last_timestamp, self._last_offset = timestamp, offset
        self.write_if_many()

    def truncate_to(self, offset: int) -> None:
        """Drop all entries whose offset is at or above `offset`."""
        self.settle()
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] < offset:
                low = middle + 1
            else:
                high = middle
        self.keep_first(low)

    def sanity_check(self) -> None:
        super().sanity_check()
        if self.entries:
            timestamp, offset = self.entry(self._entries - 1)
            if offset < self.base_offset:
                raise CorruptIndexError(
                    f"{self.path}: the last offset {offset} lies before {self.base_offset}"
                )
            if self._entries > 1 and (timestamp, offset) <= self.entry(0):
                raise CorruptIndexError(f"{self.path}: the last entry does not lie after the first")
