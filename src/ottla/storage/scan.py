"""Walks the batches of a log file in windows: the one way that recovery, verify, compaction and readers go through it.

Memory is bounded by the window, whatever the file's size. A batch larger than the window makes the window grow; one
larger than `LARGE_BATCH_BYTES` is checked piece by piece and never held whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.records import batch, kernel
from ottla.storage.fs import File

WINDOW_BYTES = 4 << 20
LARGE_BATCH_BYTES = 64 << 20
_SMALLEST_BATCH_BYTES = 26  # an empty message of magic 0
ROWS = 2048  # keeps a call into the kernel short, where it cannot let go of the GIL


@dataclass(frozen=True, slots=True)
class Window:
    """Batches found together. `rows` and `data` are reused: take what you need before asking for the next one."""

    rows: array[int]  # kernel.ROW numbers a batch; positions are those in the file
    count: int
    data: memoryview | None  # None for a batch too large to hold
    position: int  # of data[0] in the file


class Scan:
    """Iterates over windows of whole, good batches; afterwards says how far it came and why it stopped."""

    def __init__(
        self,
        file: File,
        end: int,
        *,
        start: int = 0,
        flags: int = kernel.CHECK_CRC,
        window_bytes: int | None = None,
    ) -> None:
        self._file = file
        self._end = end
        self._flags = flags
        self._buffer = memoryview(
            bytearray(min(window_bytes or WINDOW_BYTES, max(end - start, batch.HEADER_SIZE)))
        )
        # A broker that starts looks at the short tail of every log: it needs few rows.
        rows = min(ROWS, max(end - start, 0) // _SMALLEST_BATCH_BYTES + 1)
        self.rows = array("q", bytes(8 * kernel.ROW * rows))
        self.position = start  # behind the last good batch
        self.status = kernel.OK  # TRUNCATED: bytes are left that do not make a whole batch

    def __iter__(self) -> Iterator[Window]:
        while self.position < self._end:
            want = min(len(self._buffer), self._end - self.position)
            have = self._file.pread_into(self._buffer[:want], self.position)
            base = self.position
            yield from self._batches(base, have)
            if self.position > base and self.status in (kernel.OK, kernel.TRUNCATED):
                continue
            if self.status != kernel.TRUNCATED or have < want:
                return
            size = self._next_size(have)
            if size > self._end - self.position:
                return
            if size > LARGE_BATCH_BYTES:
                yield from self._large_batch(size)
                if self.status != kernel.OK:
                    return
            else:
                self._buffer = memoryview(bytearray(size))

    def _batches(self, base: int, have: int) -> Iterator[Window]:
        at, self.status = 0, kernel.OK
        while at < have and self.status == kernel.OK:
            count, at, self.status = kernel.scan(self._buffer, at, have, self.rows, self._flags, base)
            self.position = base + at
            if count:
                yield Window(self.rows, count, self._buffer, base)

    def _next_size(self, have: int) -> int:
        """The size that the batch at the buffer's start claims; more than is left when its header is cut."""
        if have < batch.OVERHEAD_SIZE:
            return self._end - self.position + 1
        return int.from_bytes(self._buffer[8:12], "big") + batch.OVERHEAD_SIZE

    def _large_batch(self, size: int) -> Iterator[Window]:
        """Check a batch in pieces: header, then the CRC by chunks. Its records are checked by whoever reads them."""
        if self._buffer[batch.MAGIC_AT] != batch.MAGIC_V2:
            self.status = kernel.BAD_LENGTH
            return
        from crc32c import crc32c  # only here, for batches larger than a window

        header = batch.parse_header(self._buffer)
        crc, at = 0, batch.ATTRIBUTES_AT
        while at < size:
            piece = self._buffer[: min(len(self._buffer), size - at)]
            if self._file.pread_into(piece, self.position + at) < len(piece):
                self.status = kernel.TRUNCATED
                return
            crc = crc32c(piece, crc)
            at += len(piece)
        if self._flags & kernel.CHECK_CRC and crc != header.crc:
            self.status = kernel.BAD_CRC
            return
        self.rows[: kernel.ROW] = array("q", _row(header, self.position))
        self.status = kernel.OK
        position, self.position = self.position, self.position + size
        yield Window(self.rows, 1, None, position)


def _row(header: batch.BatchHeader, position: int) -> list[int]:
    return [
        position,
        header.size,
        header.base_offset,
        header.last_offset,
        header.max_timestamp,
        header.leader_epoch,
        header.magic,
        header.attributes,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
        header.base_timestamp,
        header.crc,
        header.last_offset_delta,
        -1,
    ]
