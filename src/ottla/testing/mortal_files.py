"""Real files that a broker loses hold of when it is killed, although its threads live on in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.storage.fs import RealFile, RealFileSystem


class KilledError(BaseException):
    """Raised in a broker that has been killed, wherever it would still change a file. Nothing may handle it."""


def _while_alive(operation: Callable[..., None]) -> Any:
    """The same operation, unless its broker has been killed."""

    def operate(self: MortalFileSystem | _MortalFile, *arguments: Any) -> None:
        self.check_alive()
        operation(self, *arguments)

    return operate


class MortalFileSystem(RealFileSystem):
    """The operating system's files until `die`; from then on nothing changes on disk any more."""

    def __init__(self) -> None:
        self._dead = False

    def die(self) -> None:
        self._dead = True

    def check_alive(self) -> None:
        if self._dead:
            raise KilledError

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        if write or create:
            self.check_alive()
        file = super().open(path, write=write, create=create)
        mortal = _MortalFile(self, path, file._fd)
        file._fd = -1  # it is the other's now
        return mortal

    rename = _while_alive(RealFileSystem.rename)
    unlink = _while_alive(RealFileSystem.unlink)
    make_dir = _while_alive(RealFileSystem.make_dir)
    remove_dir = _while_alive(RealFileSystem.remove_dir)


class _MortalFile(RealFile):
    __slots__ = ("_system",)

    def __init__(self, system: MortalFileSystem, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._system = system

    def check_alive(self) -> None:
        self._system.check_alive()

    pwrite = _while_alive(RealFile.pwrite)
    truncate = _while_alive(RealFile.truncate)
    allocate = _while_alive(RealFile.allocate)
    sync = _while_alive(RealFile.sync)
