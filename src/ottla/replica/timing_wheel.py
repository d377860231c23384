"""A hierarchical timing wheel: thousands of deadlines, each added and taken out in constant time.

Level 0 has a slot for each millisecond of the current 64, level 1 one for each 64 ms of the current 4 s, and so on. An
item lies on the level of the highest digit (in base 64) in which its deadline differs from the clock; when the clock
reaches its slot, it moves down a level, or expires. Which slots are in use is a bit each, so that the next one is
found without turning the wheel step by step: nothing has to tick while nothing is due. A slot may have thousands of
items; whoever turns the wheel says how many are moved at once.

Pure: time is what it is told.
"""

from __future__ import annotations

import sys
from typing import Generic, TypeVar

T = TypeVar("T")

_BITS = 6
_SLOTS = 1 << _BITS
_LEVELS = 11  # enough for any 64-bit number


class Entry(Generic[T]):
    """An item on the wheel; `level` is -1 once it is off."""

    __slots__ = ("deadline_ms", "item", "level", "slot")

    def __init__(self, deadline_ms: int, item: T) -> None:
        self.deadline_ms = deadline_ms
        self.item = item
        self.level = -1
        self.slot = 0


class TimingWheel(Generic[T]):
    """Items with deadlines in whole milliseconds."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        # Made when first used: most wheels never see the higher levels.
        self._slots: list[list[dict[Entry[T], None]]] = [[] for _ in range(_LEVELS)]
        self._used = [0] * _LEVELS  # a bit for each slot that has something
        self._count = 0
        self._moving: list[Entry[T]] = []  # of the slot that the clock has reached, the last one first

    def __len__(self) -> int:
        return self._count

    def add(self, deadline_ms: int, item: T) -> Entry[T]:
        """Put an item on the wheel. One whose deadline has passed expires with the next `advance`."""
        entry = Entry(deadline_ms, item)
        self._count += 1
        self._place(entry)
        return entry

    def _place(self, entry: Entry[T]) -> None:
        now_ms = self._now_ms
        when_ms = max(entry.deadline_ms, now_ms)
        level = max(0, (when_ms ^ now_ms).bit_length() - 1) // _BITS
        slot = (when_ms >> (level * _BITS)) & (_SLOTS - 1)
        slots = self._slots[level]
        if not slots:
            slots += [{} for _ in range(_SLOTS)]
        slots[slot][entry] = None
        self._used[level] |= 1 << slot
        entry.level, entry.slot = level, slot

    def remove(self, entry: Entry[T]) -> bool:
        """Take an item off; False if it has expired."""
        level, slot = entry.level, entry.slot
        if level < 0:
            return False
        items = self._slots[level][slot]
        if entry in items:  # if not, it is among those that are moving
            del items[entry]
            if not items:
                self._used[level] &= ~(1 << slot)
        entry.level = -1
        self._count -= 1
        return True

    def next_ms(self) -> int | None:
        """When to call `advance` next; never later than the first deadline. None when the wheel is empty."""
        if self._moving:
            return self._now_ms
        found = self._next_slot()
        return None if found is None else found[0]

    def _next_slot(self) -> tuple[int, int, int] | None:
        """(its time, level, slot) of the first slot in use: the lowest level has the nearest."""
        for level, used in enumerate(self._used):
            if used:
                slot = (used & -used).bit_length() - 1
                block_bits = (level + 1) * _BITS
                return (self._now_ms >> block_bits << block_bits) | (slot << (level * _BITS)), level, slot
        return None

    def advance(self, now_ms: int, limit: int = sys.maxsize) -> list[T]:
        """Move the clock; what has expired, in the order of its deadlines. After `limit` items the clock stops on its
        way, and the next call goes on from there."""
        expired: list[T] = []
        while limit > 0:
            if not self._moving and not self._take_slot(now_ms):
                self._now_ms = max(now_ms, self._now_ms)
                break
            entry = self._moving.pop()
            if entry.level < 0:  # it was removed meanwhile
                continue
            limit -= 1
            if entry.deadline_ms <= self._now_ms:
                entry.level = -1
                self._count -= 1
                expired.append(entry.item)
            else:
                self._place(entry)
        return expired

    def _take_slot(self, now_ms: int) -> bool:
        """Begin to move the items of the next slot, if the clock gets there."""
        found = self._next_slot()
        if found is None or found[0] > now_ms:
            return False
        time_ms, level, slot = found
        self._moving = list(self._slots[level][slot])
        self._moving.reverse()
        self._slots[level][slot] = {}
        self._used[level] &= ~(1 << slot)
        self._now_ms = max(time_ms, self._now_ms)
        return True
