"""Looks into offset and time indexes that somebody else may be writing, with a few small reads each.

For the log tools and for Spark, which read beside a running broker. An index of a large segment has megabytes, and that
of an active one is filled up with zeros, which are no entries: so nothing is loaded whole, and never through a map,
which a broker that trims the file would make deadly.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from types import TracebackType
from typing import Self

from ottla.storage.fs import File, FileSystem
from ottla.storage.indexes import offset_index, time_index


class ForeignIndex:
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

    @property
    def is_there(self) -> bool:
        return self._file is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def used(self) -> int:
        """How many entries come before the zeros at the end. An index that is not written to any more has none."""
        return self._slots if self.get(self._slots - 1) else self.count(lambda _: True)

    def last(self) -> tuple[int, int] | None:
        return self.get(self.used() - 1)


class ForeignOffsetIndex(ForeignIndex):
    """(last offset of a batch, its position), offsets relative to the segment's base."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        super().__init__(fs, path, offset_index.ENTRY)

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


class ForeignTimeIndex(ForeignIndex):
    """(timestamp, offset): no record before that offset has a larger timestamp."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        super().__init__(fs, path, time_index.ENTRY)

    def offset_before(self, timestamp: int) -> int:
        """A relative offset before which every record is older than `timestamp`."""
        entry = self.get(self.count(lambda entry: entry[0] < timestamp) - 1)
        return entry[1] if entry else 0

    def largest(self) -> int | None:
        """The largest timestamp of a segment that is not written to any more."""
        entry = self.last()
        return entry[0] if entry else None
