"""One partition's directory, read while a broker may be writing to it, deleting from it or compacting it.

A listing is only true for a moment. So files are listed anew for each segment, and what is read only ever moves forward
in offsets: whatever was renamed, merged or rolled meanwhile, no record comes twice and none is left out. What retention
takes away can be read as long as the broker keeps it under its `.deleted` name.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

from ottla.logtools.walk import walk
from ottla.records import batch, kernel
from ottla.spark.transport.base import MAX_OFFSET, Aborted, BadBytes, Block, Lost, Mark
from ottla.spark.transport.blocks import read_blocks
from ottla.storage import layout
from ottla.storage.batch_reader import read_records
from ottla.storage.find_batch import is_good_batch
from ottla.storage.fs import File, FileSystem
from ottla.storage.indexes.foreign_index import ForeignOffsetIndex, ForeignTimeIndex
from ottla.storage.indexes.txn_index import TxnIndex
from ottla.storage.scan import Scan, Window

_MAX_TRIES = 100


class Segment(NamedTuple):
    """A log file as it was listed."""

    base_offset: int
    path: str  # of the log file, with its marker
    identity: int  # changes when another file takes its name
    is_first: bool = False

    def beside(self, suffix: str) -> str:
        """The index file that belongs to it."""
        stem, _, marker = self.path.rpartition(layout.LOG)
        return stem + suffix + marker


class LogFiles:
    """The segments of one partition."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self.directory = directory

    # -- what is there

    def segments(self) -> list[Segment]:
        """The log's segments in order; then those that replaced others just now, and those on their way out before."""
        by_marker: dict[str, dict[int, Segment]] = {"": {}, layout.SWAP: {}, layout.DELETED: {}}
        for name in self._fs.list_dir(self.directory):
            parsed = layout.parse_segment_file(name)
            if parsed is None or parsed.suffix != layout.LOG or parsed.marker not in by_marker:
                continue
            path = f"{self.directory}/{name}"
            try:
                identity = self._fs.identity(path)
            except FileNotFoundError:
                continue
            by_marker[parsed.marker][parsed.base_offset] = Segment(parsed.base_offset, path, identity)
        # Between the steps of a swap, the new file has only its .swap name.
        live = by_marker[layout.SWAP] | by_marker[""]
        first = min(live, default=MAX_OFFSET)
        gone = {base: segment for base, segment in by_marker[layout.DELETED].items() if base < first}
        found = [segment for _, segment in sorted((gone | live).items())]
        return [found[0]._replace(is_first=True), *found[1:]] if found else []

    def first_offset(self) -> int | None:
        """The base offset of the first segment that is not on its way out."""
        live = [s.base_offset for s in self.segments() if not s.path.endswith(layout.DELETED)]
        return min(live, default=None)

    def end_offset(self) -> int:
        """One past the last whole batch."""
        for segment in reversed(self.segments()):
            file = self._open(segment)
            if file is None:
                continue
            try:
                found = self._end_of(segment, file)
            finally:
                file.close()
            if found is not None:
                return found
            if segment.base_offset > 0:
                return segment.base_offset
        return 0

    def _end_of(self, segment: Segment, file: File) -> int | None:
        with ForeignOffsetIndex(self._fs, segment.beside(layout.INDEX)) as index:
            entry = index.last()
        position = entry[1] if entry else 0
        size = file.size()
        if not is_good_batch(file, position, size, segment.base_offset, MAX_OFFSET):
            position = 0
        end = None
        for found in walk(file, size, start=position, min_offset=segment.base_offset):
            if isinstance(found, Window):
                end = found.rows[(found.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
        return end

    # -- where things are

    def _start_position(self, segment: Segment, file: File, offset: int) -> int:
        """Where to begin to read for `offset`; the file's start if the index points at no batch."""
        if offset <= segment.base_offset:
            return 0
        with ForeignOffsetIndex(self._fs, segment.beside(layout.INDEX)) as index:
            # One entry earlier, so that the batch that is looked for has one before it: see blocks.
            position = index.position_before(offset - segment.base_offset, spare=1)
        good = position and is_good_batch(file, position, file.size(), segment.base_offset, offset + 1)
        return position if good else 0

    def marks(self, start: int, end: int, step_bytes: int) -> list[Mark]:
        """Where [start, end) can be cut; see Transport."""
        found = [Mark(start, 0)]
        passed = 0
        segments = self.segments()
        for number, segment in enumerate(segments):
            next_base = segments[number + 1].base_offset if number + 1 < len(segments) else MAX_OFFSET
            if next_base <= start or segment.base_offset >= end:
                continue
            file = self._open(segment)
            if file is None:
                continue
            with closing(file), ForeignOffsetIndex(self._fs, segment.beside(layout.INDEX)) as index:
                low = index.position_before(start - segment.base_offset)
                high = file.size()
                if end < next_base:
                    behind = index.from_offset(end - segment.base_offset)
                    high = min(high, behind[1] if behind else high)
                passed = self._mark_segment(segment, file, index, low, high, passed, end, step_bytes, found)
        return [*found, Mark(end, passed)]

    def _mark_segment(
        self,
        segment: Segment,
        file: File,
        index: ForeignOffsetIndex,
        low: int,
        high: int,
        passed: int,
        end: int,
        step_bytes: int,
        found: list[Mark],
    ) -> int:
        """Add the marks of one segment, whose part [low, high) counts; the bytes up to its end."""
        last = found[-1]
        if passed - last.size_bytes >= step_bytes and last.offset < segment.base_offset < end:
            found.append(Mark(segment.base_offset, passed))
        while True:
            wanted = low + found[-1].size_bytes + step_bytes - passed
            entry = index.from_position(wanted)
            if entry is None or entry[1] >= high:
                return passed + max(0, high - low)
            head = file.pread(batch.MAGIC_AT + 1, entry[1])
            offset = segment.base_offset + entry[0] + 1
            position = passed + entry[1] - low
            if len(head) > batch.MAGIC_AT and head[batch.MAGIC_AT] == batch.MAGIC_V2:
                offset = int.from_bytes(head[:8], "big", signed=True)
            if not found[-1].offset < offset < end:
                return passed + max(0, high - low)
            found.append(Mark(offset, position))

    def at_time(self, time_ms: int, start: int, end: int) -> int | None:
        """The first offset in [start, end) whose record has that time or a later one."""
        segments = self.segments()
        for number, segment in enumerate(segments):
            is_last = number + 1 == len(segments)
            if (not is_last and segments[number + 1].base_offset <= start) or segment.base_offset >= end:
                continue
            file = self._open(segment)
            if file is None:
                continue
            with closing(file), ForeignTimeIndex(self._fs, segment.beside(layout.TIME_INDEX)) as index:
                largest = index.largest()
                if not is_last and largest is not None and largest < time_ms:
                    continue
                offset = max(start, segment.base_offset + index.offset_before(time_ms))
                found = self._find_time(segment, file, time_ms, offset, end)
            if found is not None:
                return found
        return None

    def _find_time(self, segment: Segment, file: File, time_ms: int, start: int, end: int) -> int | None:
        position = self._start_position(segment, file, start)
        for window in Scan(file, file.size(), start=position, flags=0):
            for at in range(0, window.count * kernel.ROW, kernel.ROW):
                row = window.rows[at : at + kernel.ROW]
                if row[kernel.BASE_OFFSET] >= end:
                    return None
                if row[kernel.MAX_TIMESTAMP] < time_ms or row[kernel.LAST_OFFSET] < start:
                    continue
                for record in read_records(
                    memoryview(file.pread(row[kernel.SIZE], row[kernel.POSITION])), row
                ):
                    if record.timestamp >= time_ms and start <= record.offset < end:
                        return record.offset
        return None

    # -- batches

    def aborted(self, start: int, end: int) -> list[Aborted]:
        """The aborted transactions with records in [start, end), by the segments' transaction indexes."""
        found: list[Aborted] = []
        segments = self.segments()
        for number, segment in enumerate(segments):
            if number + 1 < len(segments) and segments[number + 1].base_offset <= start:
                continue
            try:
                index = TxnIndex(self._fs, segment.beside(layout.TXN_INDEX), segment.base_offset)
                transactions, complete = index.collect(start, end)
            except FileNotFoundError:
                continue
            found += [Aborted(txn.producer_id, txn.first_offset, txn.last_offset) for txn in transactions]
            if complete:
                break
        return found

    def read(
        self, start: int, end: int, window_bytes: int | None = None
    ) -> Generator[Block | BadBytes | Lost, None, None]:
        """The batches that hold offsets of [start, end); nothing is taken for aborted."""
        finished: set[tuple[object, ...]] = set()
        at = start
        tries = 0
        while at < end:
            segment, next_base = self._next(at, finished)
            # A log loses segments only at its beginning. Elsewhere offsets are missing because of compaction.
            if segment is not None and segment.base_offset > at and segment.is_first:
                yield Lost(at, min(segment.base_offset, end))
                at = segment.base_offset
            if segment is None or segment.base_offset >= end:
                return
            file = self._open(segment)
            if file is None:
                tries += 1
                if tries > _MAX_TRIES:
                    raise FileNotFoundError(f"{segment.path} is listed, but cannot be opened")
                continue
            finished.add(segment[:3])
            try:
                for found in self._read_segment(segment, file, at, next_base, window_bytes):
                    if isinstance(found, Block):
                        at = max(at, found.rows[(found.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1)
                    yield found
                    if at >= end:
                        return
            finally:
                file.close()
            at = max(at, next_base)

    def _next(self, at: int, finished: set[tuple[object, ...]]) -> tuple[Segment | None, int]:
        """The segment that holds `at` or, if there is none or it has been read, the next one; and where that ends."""
        segments = self.segments()
        before = [number for number, segment in enumerate(segments) if segment.base_offset <= at]
        for number in range(before[-1] if before else 0, len(segments)):
            if segments[number][:3] not in finished:
                is_last = number + 1 == len(segments)
                return segments[number], 0 if is_last else segments[number + 1].base_offset
        return None, 0

    def _read_segment(
        self, segment: Segment, file: File, at: int, next_base: int, window_bytes: int | None
    ) -> Iterator[Block | BadBytes]:
        start = self._start_position(segment, file, at)

        def is_next_behind() -> bool:
            """Whether this very file and the next are still in the log. Else a cleaner has just merged them."""
            listed = self.segments()
            is_same = segment.path.endswith(layout.LOG) and any(one[:3] == segment[:3] for one in listed)
            return is_same and any(one.base_offset == next_base for one in listed)

        return read_blocks(file, start, segment.base_offset, window_bytes, next_base or None, is_next_behind)

    def _open(self, segment: Segment) -> File | None:
        try:
            return self._fs.open(segment.path)
        except FileNotFoundError:
            return None
