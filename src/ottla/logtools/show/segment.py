"""Looks at one segment for a picture: its ends, and if asked for every batch of it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.logtools.listing import SegmentFiles, open_if_there
from ottla.logtools.show.pictures import DAMAGE, Break, LogPicture, SegmentPicture, why
from ottla.logtools.walk import Damage, walk
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.find_batch import is_good_batch
from ottla.storage.fs import File, FileSystem
from ottla.storage.indexes import txn_index
from ottla.storage.indexes.foreign_index import ForeignIndex, ForeignOffsetIndex, ForeignTimeIndex
from ottla.storage.scan import Scan, Window
from ottla.words import counted

_HEAD_BYTES = 1 << 16
_NO_LIMIT = 2**63 - 1


class SegmentLook:
    """Looks at one segment, and adds what it finds to the picture of its log."""

    def __init__(self, fs: FileSystem, files: SegmentFiles, log: LogPicture, *, check: bool) -> None:
        self._fs = fs
        self._files = files
        self._log = log
        self._check = check

    def draw(self, next_base: int | None) -> None:
        files, path = self._files, self._files.path(layout.LOG)
        shown = SegmentPicture(
            files.file_name(layout.LOG), files.base_offset, files.size, is_active=next_base is None
        )
        shown.aborted_transactions = files.sizes.get(layout.TXN_INDEX, 0) // txn_index.ENTRY.size
        try:
            file = open_if_there(self._fs, path)
            if file is None:
                return
            self._log.segments.append(shown)
            try:
                shown.size = file.size()
                self._look(file, shown, self._indexes(shown))
                if self._check:
                    self._look_through(file, shown, next_base)
            finally:
                file.close()
        except OSError as error:
            self._log.unreadable.append(why(path, error))
            if shown not in self._log.segments:
                self._log.segments.append(shown)

    def _indexes(self, shown: SegmentPicture) -> int:
        """Count entries; returns the position from which the end of the log can be reached."""
        if self._files.name:
            return 0
        tail = 0
        offsets = self._index_end(layout.INDEX, ForeignOffsetIndex)
        if offsets is not None:
            shown.index_entries, last = offsets
            if last is not None:
                tail = last[1]
                shown.bytes_per_index_entry = shown.size // shown.index_entries
        times = self._index_end(layout.TIME_INDEX, ForeignTimeIndex)
        if times is not None:
            shown.time_index_entries, last = times
            if last is not None:
                shown.max_timestamp = last[0]
        return tail

    def _index_end(
        self, suffix: str, kind: Callable[[FileSystem, str], ForeignIndex]
    ) -> tuple[int, tuple[int, int] | None] | None:
        """How many entries an index has, and the last of them; None where there is no index that can be read.

        Entries come before zeros, so that halving finds the last one. In a damaged index it may be another one that
        zeros follow."""
        path = self._files.path(suffix)
        try:
            with kind(self._fs, path) as index:
                return (index.used(), index.last()) if index.is_there else None
        except OSError as error:
            self._log.unreadable.append(why(path, error))
            return None

    def _look(self, file: File, shown: SegmentPicture, tail: int) -> None:
        """At the first batch, and at those behind the last index entry."""
        size = shown.size
        head = next(iter(Scan(file, size, flags=0, window_bytes=_HEAD_BYTES)), None)
        if head is None:
            if size and not self._check:
                self._damaged(shown, f"all {counted(size, 'byte')} are no batches")
            return
        shown.first_offset = head.rows[kernel.BASE_OFFSET]
        if head.rows[kernel.BASE_TIMESTAMP] >= 0:
            shown.first_timestamp = head.rows[kernel.BASE_TIMESTAMP]
        start = tail if tail < size and is_good_batch(file, tail, size, shown.base_offset, _NO_LIMIT) else 0
        scan = Scan(file, size, start=start, flags=0)
        for window in scan:
            shown.last_offset = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET]
            largest = _largest_timestamp(window)
            if largest >= 0 and largest > (shown.max_timestamp or -1):
                shown.max_timestamp = largest
        if scan.position < size and not self._check:
            what = counted(size - scan.position, "byte")
            self._damaged(shown, f"{what} from position {scan.position} on are no batches")

    def _look_through(self, file: File, shown: SegmentPicture, next_base: int | None) -> None:
        """At every batch, with its checksum."""
        limit = _NO_LIMIT if next_base is None else next_base
        offset, time = shown.base_offset, shown.first_timestamp  # where the next batch should begin
        damage: Damage | None = None
        for found in walk(file, shown.size, min_offset=shown.base_offset, max_offset=limit):
            if isinstance(found, Damage):
                damage = found
                continue
            first, began = found.rows[kernel.BASE_OFFSET], found.rows[kernel.BASE_TIMESTAMP]
            if damage is not None:
                self._damaged(shown, _said(damage), (offset, first - 1), (time, began))
                damage = None
            if shown.first_offset is None:
                shown.first_offset, shown.first_timestamp = first, began
            shown.last_offset = found.rows[(found.count - 1) * kernel.ROW + kernel.LAST_OFFSET]
            shown.max_timestamp = max(shown.max_timestamp or 0, _largest_timestamp(found))
            offset, time = shown.last_offset + 1, _largest_timestamp(found)
        if damage is not None:
            known = shown.last_offset if next_base is None else limit - 1  # what the headers said
            last = known if known is not None and known >= offset else None
            self._damaged(shown, _said(damage), (offset, last), (time, shown.max_timestamp))

    def _damaged(
        self,
        shown: SegmentPicture,
        meaning: str,
        offsets: tuple[int | None, int | None] | None = None,
        times: tuple[int | None, int | None] | None = None,
    ) -> None:
        after = shown.base_offset if shown.last_offset is None else shown.last_offset + 1
        first, last = offsets or (after, None)
        begin, end = times or (shown.max_timestamp, shown.max_timestamp)
        self._log.breaks.append(Break(DAMAGE, shown.file, meaning, first, last, begin, end))


def _said(damage: Damage) -> str:
    what = counted(damage.end - damage.position, "byte")
    return f"{what} at position {damage.position}: {damage.meaning}"


def _largest_timestamp(window: Window) -> int:
    return max(window.rows[kernel.MAX_TIMESTAMP : window.count * kernel.ROW : kernel.ROW])
