"""Read-only maps of log data, cut into windows, for sending records without copying them.

A window is one aligned piece of a segment's file. A few of them, over all logs, stay mapped; a sequential reader finds
its next megabyte in the window that it was in before. Whole segments are not mapped: every page that is touched
counts as memory of the process, and windows that come and go cost no more (a fault brings 16 pages along).

Views outlive the place of their window here: the map goes when the last view of it is gone. To delete the file
meanwhile does no harm, but to cut it would end the process at the next touch: `are_lent` tells, and whoever cuts must
wait.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict

from ottla.storage.fs import File

WINDOW_BYTES = 4 << 20


class Windows:
    """The windows of one segment's log file."""

    __slots__ = ("_lent", "_open")

    def __init__(self) -> None:
        self._open: dict[int, memoryview] = {}
        self._lent: dict[int, weakref.ref[object]] = {}  # every map, by id, as long as anybody holds it

    def views(
        self, cache: WindowCache, file: File, position: int, size: int, file_size: int
    ) -> list[memoryview]:
        """Views that together are `size` bytes from `position` on; `file_size` is how much may be mapped."""
        found = []
        end = position + size
        while position < end:
            number = position // WINDOW_BYTES
            start = number * WINDOW_BYTES
            until = min(end, start + WINDOW_BYTES)
            window = self._open.get(number)
            if window is None or start + len(window) < until:  # the file has grown since it was mapped
                window = self._map(file, start, min(file_size, start + WINDOW_BYTES) - start)
                self._open[number] = window
            cache.used(self, number)
            found.append(window[position - start : until - start])
            position = until
        return found

    def _map(self, file: File, position: int, size: int) -> memoryview:
        window = file.map(size, position)
        lent, key = self._lent, id(window.obj)
        lent[key] = weakref.ref(window.obj, lambda _: lent.pop(key, None))
        return window

    def drop(self, number: int) -> None:
        """Keep a window no longer than somebody has views of it."""
        self._open.pop(number, None)

    def drop_all(self) -> None:
        self._open.clear()

    @property
    def are_lent(self) -> bool:
        """Whether somebody holds views. Ask after `drop_all`."""
        return bool(self._lent)


class WindowCache:
    """How many windows stay mapped over all segments: the least recently used go first. It belongs to one thread."""

    def __init__(self, capacity: int = 16) -> None:
        self._capacity = capacity
        self._windows: OrderedDict[tuple[Windows, int], None] = OrderedDict()

    def used(self, owner: Windows, number: int) -> None:
        key = (owner, number)
        self._windows[key] = None
        self._windows.move_to_end(key)
        if len(self._windows) > self._capacity:
            oldest, its_number = self._windows.popitem(last=False)[0]
            oldest.drop(its_number)
