"""Looks into offset and time indexes of a directory that a broker may be writing to, with a few small reads each.

An index of a large segment has megabytes, and that of an active one is filled up with zeros, which are no entries: so
nothing is loaded whole, and never through a map, which a broker that trims the file would make deadly.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ottla.storage.fs import File, FileSystem

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class _Index:
    """Entries of two growing numbers each; none where there is no file."""

    def __init__(self, fs: FileSystem, path: str, entry: Struct) -> None:
        self._entry = entry
        self._file: File | None = None
        self._slots = 0
        try:
            self._file = fs.open(path)
            self._slots = self._file.size() // entry.size
        except FileNotFoundError:
            pass

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, slot: int) -> tuple[int, int] | None:
        """The entry, or None behind the last one."""
        if self._file is None or not 0 <= slot < self._slots:
            return None
        data = self._file.pread(self._entry.size, slot * self._entry.size)
        if len(data) < self._entry.size or not any(data):
            return None
        first, second = self._entry.unpack(data)
        return first, second

    def count(self, is_before: Callable[[tuple[int, int]], bool]) -> int:
        """How many entries, from the first on, `is_before` is true for."""
        low, high = 0, self._slots
        while low < high:
            middle = (low + high) // 2
            entry = self.get(middle)
            if entry is not None and is_before(entry):
                low = middle + 1
            else:
                high = middle
        return low


class OffsetIndex(_Index):
    """(last offset of a batch, its position), offsets relative to the segment's base."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        super().__init__(fs, path, _OFFSET_ENTRY)

    def position_before(self, relative_offset: int, *, spare: int = 0) -> int:
        """Where to begin to look for an offset; so many entries earlier than would do."""
        entry = self.get(self.count(lambda entry: entry[0] <= relative_offset) - 1 - spare)
        return entry[1] if entry else 0

    def from_position(self, position: int) -> tuple[int, int] | None:
        """The first entry at a position or behind it."""
        return self.get(self.count(lambda entry: entry[1] < position))

    def from_offset(self, relative_offset: int) -> tuple[int, int] | None:
        """The first entry at an offset or behind it."""
        return self.get(self.count(lambda entry: entry[0] < relative_offset))

    def last_position(self) -> int:
        entry = self.get(self.count(lambda _: True) - 1)
        return entry[1] if entry else 0


class TimeIndex(_Index):
    """(timestamp, offset): no record before that offset has a larger timestamp."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        super().__init__(fs, path, _TIME_ENTRY)

    def offset_before(self, timestamp: int) -> int:
        """A relative offset before which every record is older than `timestamp`."""
        entry = self.get(self.count(lambda entry: entry[0] < timestamp) - 1)
        return entry[1] if entry else 0

    def largest(self) -> int | None:
        entry = self.get(self.count(lambda _: True) - 1)
        return entry[0] if entry else None
