"""Real files that a broker loses hold of when it is killed, although its threads live on in this process."""

from __future__ import annotations

from ottla.names import Bytes
from ottla.storage.fs import RealFile, RealFileSystem


class KilledError(BaseException):
    """Raised in a broker that has been killed, wherever it would still change a file. Nothing may handle it."""


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

    def rename(self, source: str, target: str) -> None:
        self.check_alive()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self.check_alive()
        super().unlink(path)

    def make_dir(self, path: str) -> None:
        self.check_alive()
        super().make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.check_alive()
        super().remove_dir(path)


class _MortalFile(RealFile):
    __slots__ = ("_system",)

    def __init__(self, system: MortalFileSystem, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._system = system

    def pwrite(self, data: Bytes, position: int) -> None:
        self._system.check_alive()
        super().pwrite(data, position)

    def truncate(self, size: int) -> None:
        self._system.check_alive()
        super().truncate(size)

    def allocate(self, size: int) -> None:
        self._system.check_alive()
        super().allocate(size)

    def sync(self) -> None:
        self._system.check_alive()
        super().sync()
