"""The offset index (`.index`): where in the log a batch lies.

An entry is 8 bytes, big-endian: the last offset of a batch minus the segment's base offset (int32), and the position
where that batch begins (int32). One entry is written after every `index.interval.bytes` of log. A lookup gives the
floor: the last entry at or below the offset asked for, from where the log is scanned.
"""

from __future__ import annotations

import struct

from ottla.errors import CorruptIndexError, StorageError
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.sparse_index import SparseIndex

ENTRY = struct.Struct(">ii")


class OffsetIndex(SparseIndex):
    """Maps offsets to positions in one segment."""

    ENTRY_SIZE = 8

    __slots__ = ("_last_offset",)

    def __init__(
        self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, *, writable: bool = False
    ) -> None:
        super().__init__(fs, path, base_offset, max_bytes, writable=writable)
        self._last_offset = base_offset

    @property
    def last_offset(self) -> int:
        """The offset in the last entry; the base offset when there is none."""
        return self._last_offset if self.entries else self.base_offset

    def _note_last(self, entry: bytes | bytearray | None) -> None:
        self._last_offset = self.base_offset + (ENTRY.unpack(entry)[0] if entry else 0)

    def _key(self, entry: bytes, at: int = 0) -> int:
        relative: int = ENTRY.unpack_from(entry, at)[0]
        return relative

    @property
    def _last_key(self) -> int:
        return self._last_offset - self.base_offset

    def entry(self, slot: int) -> tuple[int, int]:
        relative, position = ENTRY.unpack(self.entry_bytes(slot))
        return self.base_offset + relative, position

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `offset`; (base offset, 0) when there is none."""
        slot = self._floor_slot(offset - self.base_offset)
        return self.entry(slot) if slot >= 0 else (self.base_offset, 0)

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at `position` or later, or None: an upper bound for what lies before it."""
        self.settle()
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] >= position:
                high = middle
            else:
                low = middle + 1
        return self.entry(low)[0] if low < self.entries else None

    def append(self, offset: int, position: int) -> None:
        if self.entries and offset <= self._last_offset:
            raise StorageError(f"{self.path}: offset {offset} does not grow past {self._last_offset}")
        self._write_entry(ENTRY.pack(offset - self.base_offset, position))
        self._last_offset = offset
        self.write_if_many()

    def truncate_to(self, offset: int) -> None:
        """Drop all entries at or above `offset`."""
        self.keep_first(self._floor_slot(offset - 1 - self.base_offset) + 1)

    def sanity_check(self) -> None:
        super().sanity_check()
        if self.entries:
            offset, position = self.entry(self._entries - 1)
            if offset < self.base_offset or position <= 0:
                raise CorruptIndexError(
                    f"{self.path}: the last entry ({offset}, {position}) lies before base offset {self.base_offset}"
                    " or at no position"
                )
