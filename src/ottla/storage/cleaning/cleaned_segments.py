"""Writes what a cleaner keeps: new segments marked `.cleaned`, with indexes, one for each group of old ones.

There can be more than one where old messages grow by becoming v2: a position in a log file has 31 bits.
"""

from __future__ import annotations

from array import array

from ottla.config import LogConfig
from ottla.names import Bytes
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log import rebuilding
from ottla.storage.log.segment import Segment
from ottla.storage.scan import ROWS

BUFFER_BYTES = 4 << 20
_MAX_SEGMENT_BYTES = 2**31 - 1


class CleanedSegments:
    """A buffer that the kernel writes batches into, and the segments that it is written to."""

    def __init__(self, fs: FileSystem, directory: str, base_offset: int, config: LogConfig) -> None:
        self._fs = fs
        self._directory = directory
        self._config = config
        self._rows = array("q", bytes(8 * kernel.ROW * ROWS))
        self._segments: list[Segment] = []
        self.buffer = memoryview(bytearray(BUFFER_BYTES))
        self.used = 0
        self._begin(base_offset)

    def _begin(self, base_offset: int) -> None:
        segment = Segment(self._fs, self._directory, base_offset, self._config, marker=layout.CLEANED)
        segment.delete()  # what an earlier attempt may have left
        rebuilding.begin(segment, self._config)
        _ = segment.file
        self._segments.append(segment)

    def make_room(self, size: int) -> None:
        """There are at least `size` bytes to write into when this returns."""
        self._write_out()
        if len(self.buffer) < size:
            self.buffer = memoryview(bytearray(size))

    def add(self, data: Bytes) -> None:
        """One whole batch."""
        if len(self.buffer) - self.used < len(data):
            self.make_room(len(data))
        self.buffer[self.used : self.used + len(data)] = data
        self.used += len(data)

    def add_aborted(self, txn: AbortedTxn) -> None:
        """Note a transaction whose marker is the next batch."""
        self._segments[-1].txn_index.append(txn)

    def _write_out(self) -> None:
        at = 0
        while at < self.used:
            segment = self._segments[-1]
            count, end, _ = kernel.scan(self.buffer, at, self.used, self._rows, 0, segment.size - at)
            if segment.size + end - at > _MAX_SEGMENT_BYTES:
                rebuilding.end(segment)
                self._begin(self._rows[kernel.BASE_OFFSET])
                continue
            segment.file.pwrite(self.buffer[at:end], segment.size)
            rebuilding.add(segment, self._rows, count, segment.size + end - at)
            at = end
        self.used = 0

    def finish(self) -> list[Segment]:
        """Everything is on disk when this returns."""
        self._write_out()
        for segment in self._segments:
            rebuilding.end(segment)
            segment.sync()
            segment.close()
        return self._segments

    def discard(self) -> None:
        for segment in self._segments:
            segment.delete()
