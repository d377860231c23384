"""A file system around another one: every operation is announced, then passed on. What tests put in between derives
from these two classes, and changes what it is about."""

from __future__ import annotations

from typing import Any

from ottla.names import Bytes
from ottla.storage.fs import File, FileSystem

LOOK = "look"  # the kind of operations that only ask what is there


def _passed_on(name: str, kind: str | None = None) -> Any:
    """A method that announces an operation on a path, and has the wrapped file system do it."""

    def operate(self: WrappedFileSystem, path: str, *more: str) -> Any:
        self.before(kind or name, path)
        return getattr(self._inner, name)(path, *more)

    return operate


class WrappedFileSystem:
    """Wraps a `FileSystem`."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner

    def before(self, kind: str, path: str) -> None:
        """An operation is about to be done: "create" or "open", "read", LOOK, or the name of the method. What is raised
        here, its caller gets."""

    def wrapped(self, file: File) -> File:
        """What callers get for an opened file."""
        return WrappedFile(self, file)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self.before("create" if create and not self._inner.exists(path) else "open", path)
        return self.wrapped(self._inner.open(path, write=write, create=create))

    read_bytes = _passed_on("read_bytes", "read")
    list_dir = _passed_on("list_dir")
    exists = _passed_on("exists", LOOK)
    is_dir = _passed_on("is_dir", LOOK)
    is_link = _passed_on("is_link", LOOK)
    identity = _passed_on("identity", LOOK)
    size = _passed_on("size", LOOK)
    modified_ms = _passed_on("modified_ms", LOOK)
    is_locked = _passed_on("is_locked", LOOK)
    rename = _passed_on("rename")
    unlink = _passed_on("unlink")
    make_dir = _passed_on("make_dir")
    remove_dir = _passed_on("remove_dir")
    sync_dir = _passed_on("sync_dir")
    space = _passed_on("space")
    lock = _passed_on("lock")


class WrappedFile:
    """Wraps a `File` that such a file system has opened."""

    def __init__(self, system: WrappedFileSystem, inner: File) -> None:
        self.path = inner.path
        self._before = system.before
        self._inner = inner

    def pread(self, size: int, position: int) -> bytes:
        self._before("read", self.path)
        return self._inner.pread(size, position)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        self._before("read", self.path)
        return self._inner.pread_into(buffer, position)

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        self._before("read", self.path)
        return self._inner.pread_cached(size, position)

    def is_cached(self, size: int, position: int) -> bool:
        return self._inner.is_cached(size, position)

    def pwrite(self, data: Bytes, position: int) -> None:
        self._before("pwrite", self.path)
        self._inner.pwrite(data, position)

    def size(self) -> int:
        return self._inner.size()

    def truncate(self, size: int) -> None:
        self._before("truncate", self.path)
        self._inner.truncate(size)

    def allocate(self, size: int) -> None:
        self._before("allocate", self.path)
        self._inner.allocate(size)

    def sync(self) -> None:
        self._before("sync", self.path)
        self._inner.sync()

    def map(self, size: int, position: int = 0) -> memoryview:
        self._before("map", self.path)
        return self._inner.map(size, position)

    def close(self) -> None:
        self._inner.close()
