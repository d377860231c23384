"""A file system around another one: every operation is announced, then passed on. What tests put in between derives
from these two classes, and changes what it is about."""

from __future__ import annotations

from ottla.names import Bytes
from ottla.storage.fs import File, FileSystem

LOOK = "look"  # the kind of operations that only ask what is there


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

    def read_bytes(self, path: str) -> bytes:
        self.before("read", path)
        return self._inner.read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        self.before("list_dir", path)
        return self._inner.list_dir(path)

    def exists(self, path: str) -> bool:
        self.before(LOOK, path)
        return self._inner.exists(path)

    def is_dir(self, path: str) -> bool:
        self.before(LOOK, path)
        return self._inner.is_dir(path)

    def is_link(self, path: str) -> bool:
        self.before(LOOK, path)
        return self._inner.is_link(path)

    def identity(self, path: str) -> int:
        self.before(LOOK, path)
        return self._inner.identity(path)

    def size(self, path: str) -> int:
        self.before(LOOK, path)
        return self._inner.size(path)

    def modified_ms(self, path: str) -> int:
        self.before(LOOK, path)
        return self._inner.modified_ms(path)

    def rename(self, source: str, target: str) -> None:
        self.before("rename", source)
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self.before("unlink", path)
        self._inner.unlink(path)

    def make_dir(self, path: str) -> None:
        self.before("make_dir", path)
        self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.before("remove_dir", path)
        self._inner.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self.before("sync_dir", path)
        self._inner.sync_dir(path)

    def space(self, path: str) -> tuple[int, int]:
        self.before("space", path)
        return self._inner.space(path)

    def lock(self, path: str) -> File | None:
        self.before("lock", path)
        return self._inner.lock(path)

    def is_locked(self, path: str) -> bool:
        self.before(LOOK, path)
        return self._inner.is_locked(path)


class WrappedFile:
    """Wraps a `File` of it."""

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
