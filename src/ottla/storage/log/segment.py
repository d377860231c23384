"""One segment: a piece of a partition's log with its indexes.

`<base offset>.log` holds batches one after another, nothing else. The offset index and the time index are sparse: an
entry is considered at every batch, and written when more than `index.interval.bytes` of log have passed since the
last one. Only the last segment of a log is appended to; the others are opened when somebody reads them.
"""

from __future__ import annotations

import contextlib
import logging
from array import array

from ottla.config import LogConfig
from ottla.errors import LogInUseError, StorageError
from ottla.names import Bytes
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import ColdPagesError, File, FileSystem, is_full, size_of
from ottla.storage.handles import HandlePool
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.txn_index import TxnIndex
from ottla.storage.log.locating import LOOKUP_BYTES, Located, Shortcuts, locate
from ottla.storage.log.log_slice import LogSlice, warm
from ottla.storage.log.windows import Windows
from ottla.storage.scan import Scan

_logger = logging.getLogger(__name__)

MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    """A log file and its indexes."""

    __slots__ = (
        "_directory", "_file", "_fs", "_interval", "_max_timestamp", "_offset_of_max_timestamp", "_pool", "_shortcuts",
        "base_offset", "bytes_since_index", "created_ms", "first_timestamp", "index_full", "index_room", "marker",
        "offset_index", "roll_jitter_ms", "size", "time_index", "txn_index", "windows", "writable",
    )  # fmt: skip

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        created_ms: int = 0,
        roll_jitter_ms: int = 0,
        marker: str = "",
    ) -> None:
        self._fs = fs
        self._directory = directory
        self.base_offset = base_offset
        self.marker = marker
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self._interval = config.index_interval_bytes
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(fs, self.path(layout.INDEX), base_offset, index_bytes)
        self.time_index = TimeIndex(fs, self.path(layout.TIME_INDEX), base_offset, index_bytes)
        self.txn_index = TxnIndex(fs, self.path(layout.TXN_INDEX), base_offset)
        self._file: File | None = None
        self._pool: HandlePool | None = None
        self.windows = Windows()
        self._shortcuts: Shortcuts = []
        self.writable = False
        self.size = size_of(fs, self.path(layout.LOG))
        self.bytes_since_index = 0
        self.index_room = 0
        self.index_full = False
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        # The largest timestamp of the first batch; rolling by time starts there.
        self.first_timestamp: int | None = None

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{layout.segment_file(self.base_offset, suffix, self.marker)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._fs.open(self.path(layout.LOG), write=self.writable, create=self.writable)
            if self._pool is not None:
                self._pool.opened(self)
        return self._file

    def release_all(self) -> None:
        """Close whatever a look at this segment has opened."""
        self.release()
        self.offset_index.release()
        self.time_index.release()
        self.txn_index.close()

    @property
    def is_open(self) -> bool:
        """Whether it holds a file."""
        return self._file is not None

    def use_pool(self, pool: HandlePool | None) -> None:
        """From now on what is open here counts there, or nowhere."""
        old = self._pool
        self._pool = self.offset_index.pool = self.time_index.pool = pool
        for holder in (self, self.offset_index, self.time_index):
            if old is not None:
                old.closed(holder)
            if pool is not None and holder.is_open:
                pool.opened(holder)

    def release(self) -> None:
        """Let go of the log file; a read that still holds a slice of it keeps it open."""
        self._file = None

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, or -1. The last time-index entry has it when nothing is appended."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch that has the largest timestamp."""
        _ = self.max_timestamp
        return self._offset_of_max_timestamp

    def largest_timestamp_ms(self) -> int:
        """For retention: the largest record timestamp, or the file's age where records carry none."""
        return self.max_timestamp if self.max_timestamp >= 0 else self._fs.modified_ms(self.path(layout.LOG))

    # -- writing

    def open_for_append(self, config: LogConfig) -> None:
        """Make this the active segment: its files are there and may be written to."""
        self.release()
        self.writable = True
        if self.size == 0:
            _ = self.file  # there may be none yet
        _ = self.max_timestamp  # the index may hold a last entry that only a closed segment has
        self._interval = config.index_interval_bytes
        self.offset_index.open_for_append(config.segment_index_bytes)
        self.time_index.open_for_append(config.segment_index_bytes)
        self._look_for_room()
        if config.preallocate and self.size == 0:
            self._preallocate(config.effective_segment_bytes)

    def _preallocate(self, size: int) -> None:
        """Room that is not there now is no error: it only makes appends steadier, and a broker must come up."""
        try:
            self.file.allocate(size)
        except OSError as error:
            if not is_full(error):
                raise
            _logger.warning(
                "%s: no room to preallocate %d bytes; it grows as it is written", self.file.path, size
            )
            self.file.truncate(0)

    def append(self, data: Bytes, size: int, last_offset: int, max_timestamp: int) -> None:
        """Add one batch of `size` bytes."""
        self._check_range(last_offset)
        position = self._write(data, size)
        if position == 0:
            self.first_timestamp = max_timestamp
        self._count_in(position, size, last_offset, max_timestamp)

    def append_run(
        self, data: Bytes, size: int, rows: array[int], count: int, latest: int, latest_offset: int
    ) -> None:
        """Add batches that coalesce() has laid out; `latest` is their largest timestamp, in the batch that ends there.

        Not to an empty segment, not past its range, and not more than its indexes have room for. Most are so small
        that no index entry is due.
        """
        position = self._write(memoryview(data)[:size], size)
        if self.bytes_since_index + size <= self._interval:
            self._count_in(position, size, latest_offset, latest)
            return
        for row in range(0, count * kernel.ROW, kernel.ROW):
            self._count_in(
                position + rows[row + kernel.POSITION],
                rows[row + kernel.SIZE],
                rows[row + kernel.LAST_OFFSET],
                rows[row + kernel.MAX_TIMESTAMP],
            )

    def append_rows(self, data: Bytes, rows: array[int], count: int) -> None:
        """Add `count` batches that scan() found in `data`, one after another from its start, with growing offsets."""
        last = (count - 1) * kernel.ROW
        self._check_range(rows[last + kernel.LAST_OFFSET])
        size = rows[last + kernel.POSITION] + rows[last + kernel.SIZE]
        position = self._write(memoryview(data)[:size], size)
        if position == 0:
            self.first_timestamp = rows[kernel.MAX_TIMESTAMP]
        for row in range(0, count * kernel.ROW, kernel.ROW):
            rows[row + kernel.POSITION] += position
        offset_entries, time_entries = self.index_rows(rows, count)
        _add_entries(self.offset_index, offset_entries)
        _add_entries(self.time_index, time_entries)
        self._look_for_room()

    def _check_range(self, last_offset: int) -> None:
        if not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            raise StorageError(
                f"{self.path(layout.LOG)}: offset {last_offset} is out of this segment's range"
            )

    def _write(self, data: Bytes, size: int) -> int:
        """Add `size` bytes to the log file, and return where they begin. What a full disk has taken of them goes."""
        position = self.size
        try:
            (self._file or self.file).pwrite(data, position)
        except OSError as error:
            if is_full(error) and self.file.size() > position:
                self.file.truncate(position)
            raise
        self.size = position + size
        return position

    def _count_in(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Keep the largest timestamp and the indexes up with a batch that was added."""
        if self._max_timestamp is None or max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_index > self._interval:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
            self.index_room -= 1  # the time index may have more: look again at the end
            if self.index_room <= 0:
                self._look_for_room()
            self.bytes_since_index = 0
        self.bytes_since_index += size

    def _look_for_room(self) -> None:
        self.index_room = min(self.offset_index.room, self.time_index.room)
        self.index_full = self.index_room <= 0

    def index_rows(self, rows: array[int], count: int) -> tuple[bytearray, bytearray]:
        """Count scanned batches in, and return the index entries that they call for."""
        timestamp, offset = self.time_index.last_entry if self.time_index.entries else (-1, -1)
        last_offset = self.offset_index.last_offset if self.offset_index.entries else -1
        counted = (self.bytes_since_index, self.max_timestamp, self.offset_of_max_timestamp)
        state = array("q", [*counted, last_offset, timestamp, offset, 0, 0])
        offset_entries, time_entries = bytearray(), bytearray()
        status = kernel.index_rows(
            rows, count, self.base_offset, self._interval, state, offset_entries, time_entries
        )
        if status != kernel.OK:
            raise StorageError(f"{self.path(layout.LOG)}: an offset is out of this segment's range")
        self.bytes_since_index, self._max_timestamp, self._offset_of_max_timestamp = state[:3]
        return offset_entries, time_entries

    def become_inactive(self) -> None:
        """The last entry of the time index is the segment's largest timestamp; then nothing is added any more."""
        self.txn_index.write()
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.trim()
        self.time_index.trim()
        if self._file is not None and self.writable and self._file.size() > self.size:
            self._file.truncate(self.size)  # the unused part of a preallocated file
        self.writable = False
        self.release()

    def sync(self) -> None:
        """All of the segment's files are on disk when this returns."""
        self.file.sync()
        for _, index in self.indexes():
            index.sync()

    # -- reading

    def check_open(self, offset: int, size: int) -> None:
        """ColdPagesError if nothing of this segment is open: to find its files may wait for the disk as well."""
        if self._file is None and not self.writable:
            fs, directory, base_offset = self._fs, self._directory, self.base_offset
            raise ColdPagesError(lambda: _warm_segment(fs, directory, base_offset, offset, size))

    def locate(self, offset: int, *, cached_only: bool = False) -> Located | None:
        """The first batch whose last offset is at or above `offset`; None when there is none.

        With `cached_only`, ColdPagesError where that would wait for the disk, or is far from the nearest index entry.
        """
        return locate(self.file, self.size, *self.offset_index.lookup(offset), offset, self._shortcuts,
                      self._fs if cached_only else None)  # fmt: skip

    def read(
        self,
        offset: int,
        max_bytes: int,
        max_position: int,
        *,
        min_one_batch: bool,
        cached_only: bool = False,
    ) -> tuple[Located, LogSlice] | None:
        """From the batch that holds `offset` (or the next one) on, at most `max_bytes` up to `max_position`."""
        located = self.locate(offset, cached_only=cached_only)
        if located is None or located.position >= max_position:
            return None
        wanted = max(max_bytes, located.size) if min_one_batch else max_bytes
        size = min(wanted, max_position - located.position)
        return located, LogSlice(self.file, located.position, size, self.size, self.windows, self._fs)

    def load_first_timestamp(self) -> int:
        """The largest timestamp of the first batch, read again after a reload."""
        if self.first_timestamp is None and self.size:
            rows = array("q", bytes(8 * kernel.ROW))
            head = self.file.pread(LOOKUP_BYTES, 0)
            kernel.scan(head, 0, len(head), rows, 0)
            self.first_timestamp = rows[kernel.MAX_TIMESTAMP]
        return -1 if self.first_timestamp is None else self.first_timestamp

    def indexes(self) -> tuple[tuple[str, OffsetIndex | TimeIndex | TxnIndex], ...]:
        """Each with the suffix of its file."""
        return (
            (layout.INDEX, self.offset_index),
            (layout.TIME_INDEX, self.time_index),
            (layout.TXN_INDEX, self.txn_index),
        )

    def forget(self, config: LogConfig) -> None:
        """As if nothing had been written yet: what is good is counted in anew (see rebuilding.py)."""
        self.release()
        self.writable = True
        self._interval = config.index_interval_bytes
        for _, index in self.indexes():
            index.reset()
        self.size = 0
        self.bytes_since_index = 0
        self._max_timestamp, self._offset_of_max_timestamp, self.first_timestamp = -1, self.base_offset, None

    # -- cutting, renaming, deleting

    def check_not_lent(self) -> None:
        """Before a cut: a reader that touches what is gone would end the process."""
        self.windows.drop_all()
        if self.windows.are_lent:
            raise LogInUseError(f"{self.path(layout.LOG)} cannot be cut while it is being sent to a reader")

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop every batch that holds `offset` or a later one. Returns where the log ends now: at `offset`, or before
        it where it lay inside a batch."""
        self.check_not_lent()
        self._shortcuts = []
        located = self.locate(offset)
        for _, index in self.indexes():
            index.truncate_to(offset)
        if located is None:
            return offset
        self.file.truncate(located.position)
        self.file.sync()  # what is appended next must not be followed by what was cut
        self.size = located.position
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = None
        self.bytes_since_index = 0
        self._reload_max_timestamp()
        return min(offset, located.base_offset)

    def _reload_max_timestamp(self) -> None:
        """After a cut the largest timestamp may lie behind the last index entry: read from there on."""
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        position = self.offset_index.lookup(self._offset_of_max_timestamp)[1]
        for window in Scan(self.file, self.size, start=position, flags=0):
            for row in range(0, window.count * kernel.ROW, kernel.ROW):
                if window.rows[row + kernel.MAX_TIMESTAMP] > self._max_timestamp:
                    self._max_timestamp = window.rows[row + kernel.MAX_TIMESTAMP]
                    self._offset_of_max_timestamp = window.rows[row + kernel.LAST_OFFSET]

    def rename(self, marker: str) -> None:
        """Give all files another marker suffix, the log last: without it the others are only strays."""
        old = {suffix: self.path(suffix) for suffix in layout.SEGMENT_SUFFIXES}
        self.marker = marker
        for suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX, layout.LOG):
            if self._fs.exists(old[suffix]):
                self._fs.rename(old[suffix], self.path(suffix))
        for suffix, index in self.indexes():
            index.renamed(self.path(suffix))

    def delete(self) -> None:
        """Remove all files; those that are gone already are no error."""
        self.close()
        for suffix in layout.SEGMENT_SUFFIXES:
            if self._fs.exists(self.path(suffix)):
                self._fs.unlink(self.path(suffix))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.closed(self)
        for _, index in self.indexes():
            index.close()
        self.release()


def _add_entries(index: OffsetIndex | TimeIndex, entries: bytearray) -> None:
    """To an index whose log has the records already: what a full disk does not take is given up."""
    try:
        index.append_raw(entries)
    except OSError as error:
        if not is_full(error):
            raise
        index.settle()


def _warm_segment(fs: FileSystem, directory: str, base_offset: int, offset: int, size: int) -> None:
    """Look an offset up as a reader would, with the indexes, and bring what follows into memory."""
    with contextlib.suppress(FileNotFoundError):
        segment = Segment(fs, directory, base_offset, LogConfig())
        try:
            located = segment.locate(offset)
            if located is not None:
                warm(fs, segment.path(layout.LOG), located.position, size)
        finally:
            segment.close()
