"""A disk of so many bytes: what does not fit fails with ENOSPC, and a write that fits in part is written in part.

    disk = SmallFileSystem(RealFileSystem(), capacity_bytes=1 << 20)
    disk.capacity_bytes += 1 << 20  # somebody has made room

Bytes count once they are written; a file that was only made longer has holes, which cost nothing, as on a real disk.
"""

from __future__ import annotations

import errno
import os

from ottla.names import Bytes
from ottla.storage.fs import File, FileSystem
from ottla.testing.wrapped_files import WrappedFile, WrappedFileSystem


class SmallFileSystem(WrappedFileSystem):
    """Wraps a `FileSystem`; `capacity_bytes` may change at any time."""

    def __init__(self, inner: FileSystem, capacity_bytes: int) -> None:
        super().__init__(inner)
        self.capacity_bytes = capacity_bytes
        self._used: dict[str, int] = {}  # how far each file has been written
        self.refusals = 0

    @property
    def used_bytes(self) -> int:
        return sum(self._used.values())

    def used_of(self, path: str) -> int:
        return self._used.get(path, 0)

    def take(self, path: str, end: int) -> int:
        """Room for a file up to `end`; how far there is any."""
        have = self.used_of(path)
        free = max(0, self.capacity_bytes - self.used_bytes)
        reached = min(end, have + free) if end > have else end
        self._used[path] = max(have, reached)
        return reached

    def cut(self, path: str, size: int) -> None:
        self._used[path] = min(self.used_of(path), size)

    def full(self, path: str) -> OSError:
        self.refusals += 1
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def wrapped(self, file: File) -> File:
        return _SmallFile(self, file)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        below = source + "/"
        for path in [path for path in self._used if path == source or path.startswith(below)]:
            self._used[target + path[len(source) :]] = self._used.pop(path)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._used.pop(path, None)

    def space(self, path: str) -> tuple[int, int]:
        return self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes)


class _SmallFile(WrappedFile):
    def __init__(self, system: SmallFileSystem, inner: File) -> None:
        super().__init__(system, inner)
        self._system = system

    def pwrite(self, data: Bytes, position: int) -> None:
        end = position + len(data)
        reached = self._system.take(self.path, end)
        if reached >= end:
            self._inner.pwrite(data, position)
            return
        if reached > position:
            self._inner.pwrite(memoryview(data)[: reached - position], position)
        raise self._system.full(self.path)

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._system.cut(self.path, size)

    def allocate(self, size: int) -> None:
        if self._system.take(self.path, size) < size:
            raise self._system.full(self.path)
        self._inner.allocate(size)
