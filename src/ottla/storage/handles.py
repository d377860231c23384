"""Keeps the number of open descriptors bounded, whatever the number of partitions.

Indexes and old segments open their files on first use and tell the pool; when it holds too many, the one opened
longest ago is asked to let go. It opens again when it is next used. Logs being appended to are not in the pool.
A pool belongs to one thread, because to open one thing may close another. A log that goes to another thread leaves its
pool on the one thread and joins another on the other. Work on threads that do not own a log has segments of its own,
without a pool.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Releasable(Protocol):
    """Something that can close its files and open them again by itself."""

    def release(self) -> None: ...


class HandlePool:
    """A queue of what is open."""

    def __init__(self, capacity: int = 1024) -> None:
        self.capacity = capacity
        self._open: OrderedDict[int, Releasable] = OrderedDict()

    def opened(self, holder: Releasable) -> None:
        self._open[id(holder)] = holder
        self._open.move_to_end(id(holder))
        while len(self._open) > self.capacity:
            self._open.popitem(last=False)[1].release()

    def closed(self, holder: Releasable) -> None:
        self._open.pop(id(holder), None)
