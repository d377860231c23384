"""A disk of so many bytes: what does not fit fails with ENOSPC, and a write that fits in part is written in part.

    disk = SmallFileSystem(RealFileSystem(), capacity_bytes=1 << 20)
    disk.capacity_bytes += 1 << 20  # somebody has made room

Bytes count once they are written; a file that was only made longer has holes, which cost nothing, as on a real disk.
"""

from __future__ import annotations

import errno
import os

from ottla.storage.fs import Bytes, File, FileSystem


class SmallFileSystem:
    """Wraps a `FileSystem`; `capacity_bytes` may change at any time."""

    def __init__(self, inner: FileSystem, capacity_bytes: int) -> None:
        self._inner = inner
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

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return _SmallFile(self, self._inner.open(path, write=write, create=create))

    def read_bytes(self, path: str) -> bytes:
        return self._inner.read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        return self._inner.list_dir(path)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._inner.is_dir(path)

    def is_link(self, path: str) -> bool:
        return self._inner.is_link(path)

    def size(self, path: str) -> int:
        return self._inner.size(path)

    def modified_ms(self, path: str) -> int:
        return self._inner.modified_ms(path)

    def rename(self, source: str, target: str) -> None:
        self._inner.rename(source, target)
        below = source + "/"
        for path in [path for path in self._used if path == source or path.startswith(below)]:
            self._used[target + path[len(source) :]] = self._used.pop(path)

    def unlink(self, path: str) -> None:
        self._inner.unlink(path)
        self._used.pop(path, None)

    def make_dir(self, path: str) -> None:
        self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        self._inner.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self._inner.sync_dir(path)

    def space(self, path: str) -> tuple[int, int]:
        return self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes)

    def lock(self, path: str) -> File | None:
        return self._inner.lock(path)


class _SmallFile:
    def __init__(self, system: SmallFileSystem, inner: File) -> None:
        self.path = inner.path
        self._system = system
        self._inner = inner

    def pread(self, size: int, position: int) -> bytes:
        return self._inner.pread(size, position)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        return self._inner.pread_into(buffer, position)

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        return self._inner.pread_cached(size, position)

    def is_cached(self, size: int, position: int) -> bool:
        return self._inner.is_cached(size, position)

    def pwrite(self, data: Bytes, position: int) -> None:
        end = position + len(data)
        reached = self._system.take(self.path, end)
        if reached >= end:
            self._inner.pwrite(data, position)
            return
        if reached > position:
            self._inner.pwrite(memoryview(data)[: reached - position], position)
        raise self._system.full(self.path)

    def size(self) -> int:
        return self._inner.size()

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._system.cut(self.path, size)

    def allocate(self, size: int) -> None:
        if self._system.take(self.path, size) < size:
            raise self._system.full(self.path)
        self._inner.allocate(size)

    def sync(self) -> None:
        self._inner.sync()

    def map(self, size: int, position: int = 0) -> memoryview:
        return self._inner.map(size, position)

    def close(self) -> None:
        self._inner.close()
