"""A disk that is slow when a test says so: operations that wait until they are let through, and pages that are cold.

`SlowFileSystem` passes everything on to another file system. Where paths are held, an operation stops before it
begins, on whatever thread it came, and goes on with `release`. Where pages are cold, a read that must not wait is told
so, until somebody has read the file.
"""

from __future__ import annotations

import threading

from ottla.storage.fs import File, FileSystem
from ottla.testing.wrapped_files import WrappedFile, WrappedFileSystem


class SlowFileSystem(WrappedFileSystem):
    """Wraps a `FileSystem`."""

    def __init__(self, inner: FileSystem) -> None:
        super().__init__(inner)
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

    def before(self, kind: str, path: str) -> None:
        if kind != "map" and self._held is not None and path.startswith(self._held):
            self._stopped.set()
            self._open.wait()

    def wrapped(self, file: File) -> File:
        return _SlowFile(self, file)


class _SlowFile(WrappedFile):
    def __init__(self, system: SlowFileSystem, inner: File) -> None:
        super().__init__(system, inner)
        self._system = system

    def pread(self, size: int, position: int) -> bytes:
        data = super().pread(size, position)
        self._system.warm(self.path)
        return data

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        size = super().pread_into(buffer, position)
        self._system.warm(self.path)
        return size

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        return None if self._system.is_cold(self.path) else self._inner.pread_cached(size, position)

    def is_cached(self, size: int, position: int) -> bool:
        return not self._system.is_cold(self.path) and self._inner.is_cached(size, position)
