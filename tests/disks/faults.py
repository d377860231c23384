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

from ottla.names import Bytes
from ottla.storage.fs import File, FileSystem
from ottla.testing import wrapped_files
from ottla.testing.wrapped_files import LOOK, WrappedFile, WrappedFileSystem

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


class FaultyFileSystem(WrappedFileSystem):
    """Wraps a `FileSystem`; `seen` counts the points passed, `failed_path` says where the fault has happened."""

    def __init__(self, inner: FileSystem, fault: Fault | None = None) -> None:
        super().__init__(inner)
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

    def before(self, kind: str, path: str) -> None:
        if kind != LOOK and (fault := self.should_fail(kind, path)):
            raise failure(fault, path)

    def wrapped(self, file: File) -> File:
        return _FaultyFile(self, file)


class _FaultyFile(WrappedFile):
    def __init__(self, system: FaultyFileSystem, inner: File) -> None:
        super().__init__(system, inner)
        self._system = system

    def pwrite(self, data: Bytes, position: int) -> None:
        fault = self._system.should_fail("pwrite", self.path)
        if fault:
            self._inner.pwrite(bytes(data)[: fault.written_bytes], position)
            raise failure(fault, self.path)
        self._inner.pwrite(data, position)

    def sync(self) -> None:
        fault = self._system.should_fail("sync", self.path)
        if fault:
            self._system.lost_syncs.add(self.path)
            raise failure(fault, self.path)
        if self.path not in self._system.lost_syncs:
            self._inner.sync()


def failure(fault: Fault, path: str) -> OSError:
    return OSError(fault.error, os.strerror(fault.error), path)


def _target(path: str) -> str:
    return _UNIQUE.sub("*", _NUMBERED.sub("*", path.rstrip("/").rpartition("/")[2]))


def _caller() -> str:
    """The nearest function outside the wrappers."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename in (__file__, wrapped_files.__file__):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}"
