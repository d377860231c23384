"""A file system that fails exactly where a test says.

`FaultyFileSystem` passes every operation on to another one and counts it by its kind, the kind of file and
the function that asked for it. A first run without a fault shows what there is to fail (`seen`); then each of
these can be made to fail once.

A sync that failed is never repaired by a later one: Linux drops the pages and reports the error once. So
later syncs of that file say yes and do nothing, and code that tries again loses data on a simulated disk.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections import Counter
from typing import NamedTuple

from ottla.storage.fs import Bytes, File, FileSystem

_NUMBERED = re.compile(r"^\d{20}")
_UNIQUE = re.compile(r"[0-9a-f]{32}")


class Point(NamedTuple):
    """One distinct operation of a program."""

    kind: str  # "create" or "open", "read", or the name of the method of File or FileSystem
    target: str  # the file's name, without offsets and unique ids
    caller: str  # module.function


class Fault(NamedTuple):
    """Fail the `nth` operation (from 0) at a point, once. A write leaves `written_bytes` of its data."""

    point: Point
    nth: int = 0
    error: int = errno.EIO
    written_bytes: int = 0

    def __str__(self) -> str:
        name = errno.errorcode[self.error]
        return f"{self.point.kind} of {self.point.target} in {self.point.caller}, number {self.nth}: {name}"


class FaultyFileSystem:
    """Wraps a `FileSystem`; `seen` counts the points passed, `failed_path` says where the fault has happened."""

    def __init__(self, inner: FileSystem, fault: Fault | None = None) -> None:
        self._inner = inner
        self.fault = fault
        self.seen: Counter[Point] = Counter()
        self.failed_path: str | None = None
        self.lost_syncs: set[str] = set()

    @property
    def fired(self) -> bool:
        """Whether the fault has happened."""
        return self.failed_path is not None

    def should_fail(self, kind: str, path: str) -> Fault | None:
        """Count an operation; the fault, if it is this one's turn."""
        point = Point(kind, _target(path), _caller())
        nth = self.seen[point]
        self.seen[point] += 1
        fault = self.fault
        if fault is None or self.fired or (point, nth) != (fault.point, fault.nth):
            return None
        self.failed_path = path
        return fault

    def check(self, kind: str, path: str) -> None:
        if fault := self.should_fail(kind, path):
            raise failure(fault, path)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self.check("create" if create and not self._inner.exists(path) else "open", path)
        return _FaultyFile(self, self._inner.open(path, write=write, create=create))

    def read_bytes(self, path: str) -> bytes:
        self.check("read", path)
        return self._inner.read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        self.check("list_dir", path)
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
        self.check("rename", source)
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self.check("unlink", path)
        self._inner.unlink(path)

    def make_dir(self, path: str) -> None:
        self.check("make_dir", path)
        self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.check("remove_dir", path)
        self._inner.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self.check("sync_dir", path)
        self._inner.sync_dir(path)

    def space(self, path: str) -> tuple[int, int]:
        self.check("space", path)
        return self._inner.space(path)

    def lock(self, path: str) -> File | None:
        self.check("lock", path)
        return self._inner.lock(path)


class _FaultyFile:
    def __init__(self, system: FaultyFileSystem, inner: File) -> None:
        self.path = inner.path
        self._system = system
        self._inner = inner

    def pread(self, size: int, position: int) -> bytes:
        self._system.check("read", self.path)
        return self._inner.pread(size, position)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        self._system.check("read", self.path)
        return self._inner.pread_into(buffer, position)

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        self._system.check("read", self.path)
        return self._inner.pread_cached(size, position)

    def is_cached(self, size: int, position: int) -> bool:
        return self._inner.is_cached(size, position)

    def pwrite(self, data: Bytes, position: int) -> None:
        fault = self._system.should_fail("pwrite", self.path)
        if fault:
            self._inner.pwrite(bytes(data)[: fault.written_bytes], position)
            raise failure(fault, self.path)
        self._inner.pwrite(data, position)

    def size(self) -> int:
        return self._inner.size()

    def truncate(self, size: int) -> None:
        self._system.check("truncate", self.path)
        self._inner.truncate(size)

    def allocate(self, size: int) -> None:
        self._system.check("allocate", self.path)
        self._inner.allocate(size)

    def sync(self) -> None:
        fault = self._system.should_fail("sync", self.path)
        if fault:
            self._system.lost_syncs.add(self.path)
            raise failure(fault, self.path)
        if self.path not in self._system.lost_syncs:
            self._inner.sync()

    def map(self, size: int, position: int = 0) -> memoryview:
        self._system.check("map", self.path)
        return self._inner.map(size, position)

    def close(self) -> None:
        self._inner.close()


def failure(fault: Fault, path: str) -> OSError:
    return OSError(fault.error, os.strerror(fault.error), path)


def _target(path: str) -> str:
    return _UNIQUE.sub("*", _NUMBERED.sub("*", path.rstrip("/").rpartition("/")[2]))


def _caller() -> str:
    """The nearest function outside this file."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}"
