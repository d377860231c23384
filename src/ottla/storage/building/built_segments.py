"""Writes finished segments out of batches that have no offsets yet: for imports, where no broker appends them."""

from __future__ import annotations

from array import array

from ottla.config import LogConfig
from ottla.errors import CorruptRecordError
from ottla.records import batch, kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.log import rebuilding
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.scan import ROWS


class BuiltSegments:
    """Consecutive segments from one base offset on, rolled by size as a broker would."""

    def __init__(
        self, fs: FileSystem, directory: str, base_offset: int, leader_epoch: int, config: LogConfig
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._leader_epoch = leader_epoch
        self._config = config
        self._rows = array("q", bytes(8 * kernel.ROW * ROWS))
        self.end_offset = base_offset
        self.segments: list[Segment] = []
        self._begin()

    def _begin(self) -> None:
        segment = Segment(self._fs, self._directory, self.end_offset, self._config)
        rebuilding.begin(segment, self._config)
        segment.file.truncate(0)  # what an earlier attempt may have left
        self.segments.append(segment)

    def add(self, data: bytearray) -> None:
        """Whole batches, one after another. They are given their offsets in `data`."""
        at = 0
        while at < len(data):
            segment = self.segments[-1]
            room = self._config.effective_segment_bytes - segment.size
            count, end, _ = kernel.scan(
                data, at, min(len(data), at + room), self._rows, kernel.CHECK_CRC, segment.size - at
            )
            if not count and segment.size:
                self._roll()
                continue
            if not count:  # a batch that is larger than a segment has one of its own
                count, end, status = kernel.scan(data, at, len(data), self._rows, kernel.CHECK_CRC, -at)
                if not count:
                    meaning = kernel.STATUS_MEANING[status]
                    raise CorruptRecordError(f"{segment.path(layout.LOG)}: a batch for it is bad: {meaning}")
                count, end = 1, at + self._rows[kernel.SIZE]
            self._number(data, at - segment.size, count)
            last = self._rows[(count - 1) * kernel.ROW + kernel.LAST_OFFSET]
            if last - segment.base_offset > MAX_RELATIVE_OFFSET and segment.size:
                self.end_offset = self._rows[kernel.BASE_OFFSET]
                self._roll()
                continue
            segment.file.pwrite(memoryview(data)[at:end], segment.size)
            rebuilding.add(segment, self._rows, count, segment.size + end - at)
            at = end

    def _roll(self) -> None:
        rebuilding.end(self.segments[-1])
        self._begin()

    def _number(self, data: bytearray, shift: int, count: int) -> None:
        """Give scanned batches their offsets, in the data and in the rows."""
        rows = self._rows
        for row in range(0, count * kernel.ROW, kernel.ROW):
            position = rows[row + kernel.POSITION] + shift
            batch.patch_offsets(data, position, self.end_offset, self._leader_epoch)
            rows[row + kernel.BASE_OFFSET] = self.end_offset
            rows[row + kernel.LAST_OFFSET] = self.end_offset + rows[row + kernel.LAST_DELTA]
            rows[row + kernel.LEADER_EPOCH] = self._leader_epoch
            self.end_offset = rows[row + kernel.LAST_OFFSET] + 1

    def finish(self) -> None:
        """Everything is on disk when this returns."""
        for segment in self.segments:
            if segment.writable:
                rebuilding.end(segment)
            segment.sync()
            segment.close()
        self._fs.sync_dir(self._directory)
