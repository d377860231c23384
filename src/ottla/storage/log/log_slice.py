"""What a read of a segment gives: a range of its file, and ways to get at the bytes. And how to warm cold pages."""

from __future__ import annotations

import contextlib
import errno
from typing import NamedTuple

from ottla.records import batch
from ottla.storage.fs import ColdPagesError, File, FileSystem
from ottla.storage.log.windows import WindowCache, Windows

READ_AHEAD_BYTES = 1 << 20
# Up to here a copy costs no more than views of a map, and asks on the way whether the pages are in memory.
_COPY_BYTES = 64 << 10


class LogSlice(NamedTuple):
    """A range of a segment's file that a read may send. It may end inside a batch."""

    file: File
    position: int
    size: int
    segment_size: int
    windows: Windows
    fs: FileSystem

    def read(self) -> bytes:
        data = self.file.pread(self.size, self.position)
        if len(data) < self.size:
            raise cut_from_outside(self.file, self.segment_size)
        return data

    def head(self, limit: int) -> LogSlice:
        """The first `limit` bytes, or the first batch if that is larger."""
        if self.size <= limit:
            return self
        size = int.from_bytes(self.file.pread(batch.OVERHEAD_SIZE, self.position)[8:], "big")
        return self._replace(size=min(self.size, max(limit, size + batch.OVERHEAD_SIZE)))

    def views(self, cache: WindowCache) -> list[memoryview]:
        """The bytes, copied only where that is cheaper; ColdPagesError if that would wait for the disk.

        Only to be sent: where the file was cut, or its disk fails, a send gets an error, but a look ends the process.
        """
        file, position, size, segment_size, windows, _ = self
        if size <= _COPY_BYTES:
            data = file.pread_cached(size, position)
            if data is None:
                raise self._cold()
            return [memoryview(data)]
        if not file.is_cached(size, position):
            raise self._cold()
        return windows.views(cache, file, position, size, segment_size)

    def _cold(self) -> ColdPagesError:
        return ColdPagesError(lambda: warm(self.fs, self.file.path, self.position, self.size))


def cut_from_outside(file: File, size: int) -> OSError:
    """What to raise for a file that is shorter than what was written to it: as if the disk had failed."""
    what = f"{size} bytes were written and {file.size()} are left: something else has cut it"
    return OSError(errno.EIO, what, file.path)


def warm(fs: FileSystem, path: str, position: int, size: int) -> None:
    """Bring a part of a file into memory, through a handle of its own. A file that is gone needs no warming."""
    buffer = bytearray(min(size, READ_AHEAD_BYTES))
    with contextlib.suppress(FileNotFoundError):
        file = fs.open(path)
        try:
            for at in range(position, position + size, len(buffer)):
                file.pread_into(buffer, at)
        finally:
            file.close()
