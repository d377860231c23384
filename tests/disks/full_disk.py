"""A simulated disk with an end: what does not fit fails with ENOSPC, and leaves no part of the write.

Space goes by blocks, as on real disks. Zeros at the end of a file take none, so that preallocated files are as cheap as
sparse ones.
"""

from __future__ import annotations

import errno
import os

from ottla.names import Bytes
from ottla.testing.disk import SimulatedDisk, SimulatedFile, write_at
from ottla.testing.history import Image

BLOCK_BYTES = 4096


def blocks(data: Bytes) -> int:
    """How many of them a file with these bytes takes."""
    return -(-len(bytes(data).rstrip(b"\0")) // BLOCK_BYTES)


class FullDisk(SimulatedDisk):
    """Has room for what is on it and `free_blocks` more. Paths below `elsewhere` lie on another disk, with room."""

    def __init__(self, image: Image, free_blocks: int = 0, elsewhere: str = "/elsewhere") -> None:
        super().__init__(image)
        self._elsewhere = elsewhere
        self._blocks = self._used() + free_blocks

    def _used(self) -> int:
        here = (file for path, file in self.image().walk() if not path.startswith(self._elsewhere))
        return sum(blocks(file.data) for file in here if file is not None)

    def free_blocks(self) -> int:
        return self._blocks - self._used()

    def space(self, path: str) -> tuple[int, int]:
        if path.startswith(self._elsewhere):
            return super().space(path)
        return self._blocks * BLOCK_BYTES, max(0, self.free_blocks()) * BLOCK_BYTES

    def open(self, path: str, *, write: bool = False, create: bool = False) -> SimulatedFile:
        node = self._open_node(path, create=create)
        kind = SimulatedFile if path.startswith(self._elsewhere) else _File
        return kind(self, path, node, write=write or create)


class _File(SimulatedFile):
    def pwrite(self, data: Bytes, position: int) -> None:
        disk = self._disk
        assert isinstance(disk, FullDisk)
        grown = bytearray(self._file.data)
        write_at(grown, bytes(data), position)
        more = blocks(grown) - blocks(self._file.data)
        if more > 0 and more > disk.free_blocks():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        super().pwrite(data, position)
