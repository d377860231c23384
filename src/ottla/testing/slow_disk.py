"""A disk that is slow when a test says so: operations that wait until they are let through, and pages that are cold.

`SlowFileSystem` passes everything on to another file system. Where paths are held, an operation stops before it
begins, on whatever thread it came, and goes on with `release`. Where pages are cold, a read that must not wait is told
so, until somebody has read the file.
"""

from __future__ import annotations

import threading

from ottla.storage.fs import Bytes, File, FileSystem


class SlowFileSystem:
    """Wraps a `FileSystem`."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner
        self._held: str | None = None
        self._open = threading.Event()
        self._stopped = threading.Event()
        self._cold: dict[str, bool] = {}  # path: whether it stays so
        self.warmed: list[str] = []  # what was read while it was cold, in order

    def hold(self, prefix: str) -> None:
        """From now on every operation on a path that begins so stops."""
        self._open.clear()
        self._stopped.clear()
        self._held = prefix

    def wait_until_held(self, timeout_s: float = 60) -> bool:
        """Wait until an operation has stopped."""
        return self._stopped.wait(timeout_s)

    def release(self) -> None:
        self._held = None
        self._open.set()

    def cool_down(self, path: str, *, for_good: bool = False) -> None:
        """Nothing of this file is in memory any more. `for_good`: nor does it stay there when it is read."""
        self._cold[path] = for_good

    def is_cold(self, path: str) -> bool:
        return path in self._cold

    def warm(self, path: str) -> None:
        if path in self._cold:
            self.warmed.append(path)
            if not self._cold[path]:
                del self._cold[path]

    def go(self, path: str) -> None:
        """Every operation passes here."""
        if self._held is not None and path.startswith(self._held):
            self._stopped.set()
            self._open.wait()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self.go(path)
        return _SlowFile(self, self._inner.open(path, write=write, create=create))

    def read_bytes(self, path: str) -> bytes:
        self.go(path)
        return self._inner.read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        self.go(path)
        return self._inner.list_dir(path)

    def exists(self, path: str) -> bool:
        self.go(path)
        return self._inner.exists(path)

    def is_dir(self, path: str) -> bool:
        self.go(path)
        return self._inner.is_dir(path)

    def is_link(self, path: str) -> bool:
        self.go(path)
        return self._inner.is_link(path)

    def size(self, path: str) -> int:
        self.go(path)
        return self._inner.size(path)

    def modified_ms(self, path: str) -> int:
        self.go(path)
        return self._inner.modified_ms(path)

    def rename(self, source: str, target: str) -> None:
        self.go(source)
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self.go(path)
        self._inner.unlink(path)

    def make_dir(self, path: str) -> None:
        self.go(path)
        self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.go(path)
        self._inner.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self.go(path)
        self._inner.sync_dir(path)

    def space(self, path: str) -> tuple[int, int]:
        self.go(path)
        return self._inner.space(path)

    def lock(self, path: str) -> File | None:
        self.go(path)
        return self._inner.lock(path)


class _SlowFile:
    def __init__(self, system: SlowFileSystem, inner: File) -> None:
        self.path = inner.path
        self._system = system
        self._inner = inner

    def pread(self, size: int, position: int) -> bytes:
        self._system.go(self.path)
        self._system.warm(self.path)
        return self._inner.pread(size, position)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        self._system.go(self.path)
        self._system.warm(self.path)
        return self._inner.pread_into(buffer, position)

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        return None if self._system.is_cold(self.path) else self._inner.pread_cached(size, position)

    def is_cached(self, size: int, position: int) -> bool:
        return not self._system.is_cold(self.path) and self._inner.is_cached(size, position)

    def pwrite(self, data: Bytes, position: int) -> None:
        self._system.go(self.path)
        self._inner.pwrite(data, position)

    def size(self) -> int:
        return self._inner.size()

    def truncate(self, size: int) -> None:
        self._system.go(self.path)
        self._inner.truncate(size)

    def allocate(self, size: int) -> None:
        self._system.go(self.path)
        self._inner.allocate(size)

    def sync(self) -> None:
        self._system.go(self.path)
        self._inner.sync()

    def map(self, size: int, position: int = 0) -> memoryview:
        return self._inner.map(size, position)

    def close(self) -> None:
        self._inner.close()
