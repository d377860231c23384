"""The two passes of a cleaner over old segments: which offset is the last for each key, then a copy without the rest.

It runs on a thread of its own, on files that it opens by path, and touches nothing of the log that owns them. Loops
over records are in records/cleaning/offset_map_kernel.py and records/cleaning/compact_kernel.py; here are windows,
transactions and the batches that must be opened.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.config import LogConfig
from ottla.errors import CompactionAbortedError, CorruptRecordError
from ottla.records import batch, control, kernel
from ottla.records.cleaning import compact_kernel
from ottla.records.cleaning.offset_map_kernel import OffsetMap
from ottla.storage import layout
from ottla.storage.cleaning.cleaned_segments import CleanedSegments
from ottla.storage.cleaning.cleaned_txns import CleanedTxns
from ottla.storage.cleaning.packed_batch import PackedBatch
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.scan import ROWS, Scan, Window

_NO_OFFSETS = array("q")


class CleaningJob(NamedTuple):
    """What there is to clean, as the log's owner saw it."""

    fs: FileSystem
    directory: str
    config: LogConfig
    bases: list[int]  # of the segments to clean, ascending
    first_dirty_offset: int
    end_offset: int  # what lies from here on is left alone; a segment's base
    aborted_later: list[AbortedTxn]  # by markers that lie behind it
    last_data_offsets: set[int]  # of active producers: the batch that ends there has their last sequence
    # Of active producers without such a batch: the epoch that only a marker has.
    marker_epochs: dict[int, int]
    now_ms: int
    hash_key: tuple[int, int]


class CleanedGroup(NamedTuple):
    """Old segments, by base offset, and the complete new ones (marked .cleaned, synced) that can take their place."""

    old: list[int]
    new: list[Segment]


class Cleaner:
    """One cleaning of one log. `next_group` gives results in the order of offsets."""

    def __init__(
        self,
        source: CleaningJob,
        map_bytes: int,
        load_factor: float,
        should_stop: Callable[[], bool] = lambda: False,
        took: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._source = source
        self._took = took  # told of all bytes that were read or written, and may make the cleaner wait
        self._should_stop = should_stop
        self._map = OffsetMap(map_bytes, load_factor, *source.hash_key)
        self._segments: list[Segment] = []
        self._aborted = [*source.aborted_later]
        self._groups: Iterator[CleanedGroup] | None = None
        self._latest = source.first_dirty_offset - 1  # the map knows every key up to here
        self._actions = bytearray(ROWS)
        self._special = array("q", bytes(8 * ROWS))

    @property
    def cleaned_to(self) -> int:
        """The first offset that is still dirty once all groups are in their place."""
        return self._latest + 1

    def next_group(self) -> CleanedGroup | None:
        """Clean one more group of segments; None when there is none left."""
        try:
            if self._groups is None:
                self._open_segments()
                self._fill_map()
                self._groups = self._clean()
            return next(self._groups, None)
        except OSError as error:
            if self._should_stop():  # the log was deleted, or cut, and with it a file
                raise CompactionAbortedError(f"{self._source.directory}: {error}") from error
            raise

    def _open_segments(self) -> None:
        source = self._source
        self._segments = [Segment(source.fs, source.directory, base, source.config) for base in source.bases]
        for segment in self._segments:
            self._aborted += segment.txn_index.entries

    # -- first pass

    def _fill_map(self) -> None:
        source = self._source
        first = source.first_dirty_offset
        txns = CleanedTxns(self._aborted)
        ends = [*source.bases[1:], source.end_offset]
        for segment, end in zip(self._segments, ends, strict=True):
            if end <= first:
                continue
            located = segment.locate(first)
            for window in self._windows(segment, located.position if located else segment.size):
                self._decide_for_map(window, txns)
                if not self._enter(segment, window):
                    return
            self._latest = max(self._latest, end - 1)
            segment.close()

    def _decide_for_map(self, window: Window, txns: CleanedTxns) -> None:
        """Neither markers nor records of aborted transactions say anything about a key."""
        rows = window.rows
        for number in self._special_rows(window, _NO_OFFSETS):
            row = number * kernel.ROW
            last_offset, producer_id = rows[row + kernel.LAST_OFFSET], rows[row + kernel.PRODUCER_ID]
            if rows[row + kernel.ATTRIBUTES] & batch.CONTROL:
                marker = control.parse_marker(_bytes_of(window, number))
                if marker is not None:
                    txns.end(producer_id, last_offset, marker)
                self._actions[number] = compact_kernel.DROP
            elif txns.is_aborted(producer_id, last_offset):
                self._actions[number] = compact_kernel.DROP

    def _enter(self, segment: Segment, window: Window) -> bool:
        """Put the keys of a window into the map; False when it is full."""
        data, number, rows, first = window.data, 0, window.rows, self._source.first_dirty_offset
        assert data is not None
        while number < window.count:
            number, why = self._map.put_rows(
                data, window.position, rows, number, window.count, self._actions, first
            )
            if why == compact_kernel.PACKED:
                packed = self._open(segment, window, number)
                _, why = self._map.put_rows(packed.plain, 0, packed.rows, 0, 1, bytes(1), first)
                number += why == compact_kernel.DONE
            if number:
                self._latest = max(self._latest, rows[(number - 1) * kernel.ROW + kernel.LAST_OFFSET])
            if why == compact_kernel.FULL:
                self._check_progress(rows[number * kernel.ROW + kernel.BASE_OFFSET])
                return False
            if why == compact_kernel.BAD:
                raise _malformed(segment, window, number)
        return True

    def _check_progress(self, offset: int) -> None:
        if self._latest < self._source.first_dirty_offset:
            raise CompactionAbortedError(
                f"{self._source.directory}: the keys of the batch at offset {offset} do not fit into the cleaner's "
                f"map of {self._map.size_bytes} bytes; raise log.cleaner.dedupe.buffer.size"
            )

    # -- second pass

    def _clean(self) -> Iterator[CleanedGroup]:
        txns = CleanedTxns(self._aborted)
        for group in self._grouped():
            new = CleanedSegments(
                self._source.fs, self._source.directory, group[0].base_offset, self._source.config
            )
            try:
                for segment in group:
                    self._clean_segment(segment, new, txns)
                    segment.close()
                segments = new.finish()
                self._took(sum(segment.size for segment in segments))
            except BaseException:
                with contextlib.suppress(OSError):  # then the next start removes them
                    new.discard()
                raise
            yield CleanedGroup([segment.base_offset for segment in group], segments)

    def _grouped(self) -> Iterator[list[Segment]]:
        """Neighbours that fit into one segment together, and none that begins behind what was mapped."""
        config, group = self._source.config, list[Segment]()
        sizes = [0, 0, 0]
        limits = (config.effective_segment_bytes, config.segment_index_bytes, config.segment_index_bytes)
        segments = [segment for segment in self._segments if segment.base_offset <= self._latest]
        ends = [*self._source.bases[1:], self._source.end_offset]
        for segment, end in zip(segments, ends, strict=False):
            own = [segment.size, segment.offset_index.size_bytes, segment.time_index.size_bytes]
            summed = [have + more for have, more in zip(sizes, own, strict=True)]
            too_much = any(size > limit for size, limit in zip(summed, limits, strict=True))
            too_wide = segment.size > 0 and group and end - 1 - group[0].base_offset > MAX_RELATIVE_OFFSET
            if group and (too_much or too_wide):
                yield group
                group, summed = [], own
            group.append(segment)
            sizes = summed
        if group:
            yield group

    def _clean_segment(self, segment: Segment, new: CleanedSegments, txns: CleanedTxns) -> None:
        source = self._source
        horizon_ms = source.now_ms + source.config.delete_retention_ms
        offsets = array("q", sorted({*source.last_data_offsets, source.end_offset - 1}))
        for window in self._windows(segment):
            data, number = window.data, 0
            assert data is not None
            self._decide_for_copy(window, offsets, txns, new)
            while number < window.count:
                number, new.used, why = compact_kernel.filter_rows(
                    self._map, data, window.position, window.rows, number, window.count, self._actions,
                    self._latest, source.now_ms, horizon_ms, new.buffer, new.used,
                )  # fmt: skip
                if why == compact_kernel.NO_ROOM:
                    row = number * kernel.ROW
                    count = max(window.rows[row + kernel.COUNT], 0)
                    new.make_room(window.rows[row + kernel.SIZE] + compact_kernel.GROWTH_BYTES * count)
                elif why == compact_kernel.PACKED:
                    self._clean_packed(segment, window, number, horizon_ms, new)
                    number += 1
                elif why == compact_kernel.BAD:
                    raise _malformed(segment, window, number)

    def _decide_for_copy(
        self, window: Window, offsets: array[int], txns: CleanedTxns, new: CleanedSegments
    ) -> None:
        rows = window.rows
        for number in self._special_rows(window, offsets):
            row = number * kernel.ROW
            attributes, last_offset = rows[row + kernel.ATTRIBUTES], rows[row + kernel.LAST_OFFSET]
            # The last batch stays, so that the end of what is cleaned stays known.
            keep = last_offset == self._source.end_offset - 1
            if attributes & batch.CONTROL and rows[row + kernel.MAGIC] == batch.MAGIC_V2:
                self._actions[number] = self._decide_for_marker(window, number, keep, txns, new)
                continue
            keep = keep or last_offset in self._source.last_data_offsets
            transactional = attributes & batch.TRANSACTIONAL and rows[row + kernel.MAGIC] == batch.MAGIC_V2
            if transactional and txns.is_aborted(rows[row + kernel.PRODUCER_ID], last_offset):
                self._actions[number] = compact_kernel.EMPTY if keep else compact_kernel.DROP
            else:
                self._actions[number] = compact_kernel.FILTER_OR_EMPTY if keep else compact_kernel.FILTER

    def _decide_for_marker(
        self, window: Window, number: int, keep: bool, txns: CleanedTxns, new: CleanedSegments
    ) -> int:
        rows, row, source = window.rows, number * kernel.ROW, self._source
        producer_id, offset = rows[row + kernel.PRODUCER_ID], rows[row + kernel.LAST_OFFSET]
        has_epoch = source.marker_epochs.get(producer_id) == rows[row + kernel.PRODUCER_EPOCH]
        if rows[row + kernel.COUNT] == 0:
            return compact_kernel.EMPTY if keep or has_epoch else compact_kernel.DROP
        marker = control.parse_marker(_bytes_of(window, number))
        if marker is None:
            return compact_kernel.COPY  # not of a transaction
        unneeded, aborted = txns.end(producer_id, offset, marker)
        if aborted is not None:
            new.add_aborted(aborted)
        if not unneeded:
            return compact_kernel.COPY
        marked = rows[row + kernel.ATTRIBUTES] & batch.DELETE_HORIZON
        # Kafka empties a marker that has the epoch; then the epoch is forgotten when the log is read again.
        if has_epoch or not marked or rows[row + kernel.BASE_TIMESTAMP] > source.now_ms:
            return compact_kernel.MARK
        return compact_kernel.EMPTY if keep else compact_kernel.DROP

    def _clean_packed(
        self, segment: Segment, window: Window, number: int, horizon_ms: int, new: CleanedSegments
    ) -> None:
        """Open a compressed or old batch, clean it as a plain one, and pack what stays."""
        packed = self._open(segment, window, number)
        room = len(packed.plain) + compact_kernel.GROWTH_BYTES * packed.rows[kernel.COUNT]
        out = memoryview(bytearray(room))
        _, size, why = compact_kernel.filter_rows(
            self._map, packed.plain, 0, packed.rows, 0, 1, self._actions[number : number + 1],
            self._latest, self._source.now_ms, horizon_ms, out, 0,
        )  # fmt: skip
        if why == compact_kernel.BAD:
            raise _malformed(segment, window, number)
        if size:
            new.add(packed.repack(out[:size]))

    # -- what both passes share

    def _windows(self, segment: Segment, start: int = 0) -> Iterator[Window]:
        """All windows of a segment with their batches at hand; anything that is not a good batch is an error."""
        scan = Scan(segment.file, segment.size, start=start)
        for window in scan:
            self._took(scan.position - start)
            start = scan.position
            if self._should_stop():
                raise CompactionAbortedError(f"cleaning of {self._source.directory} was called off")
            if window.data is None:
                data = memoryview(segment.file.pread(window.rows[kernel.SIZE], window.position))
                yield Window(window.rows, window.count, data, window.position)
            else:
                yield window
        if scan.position < segment.size:
            raise CorruptRecordError(
                f"{segment.path(layout.LOG)}: at position {scan.position}: {kernel.STATUS_MEANING[scan.status]}"
            )

    def _open(self, segment: Segment, window: Window, number: int) -> PackedBatch:
        try:
            return PackedBatch(_bytes_of(window, number), self._source.config.decompression_max_bytes)
        except CorruptRecordError as error:
            raise type(error)(f"{_place(segment, window, number)}: {error}") from error

    def _special_rows(self, window: Window, offsets: array[int]) -> array[int]:
        self._actions[:] = bytes(len(self._actions))
        return self._special[: compact_kernel.special_rows(window.rows, window.count, offsets, self._special)]


def _bytes_of(window: Window, number: int) -> memoryview:
    assert window.data is not None
    start = window.rows[number * kernel.ROW + kernel.POSITION] - window.position
    return window.data[start : start + window.rows[number * kernel.ROW + kernel.SIZE]]


def _place(segment: Segment, window: Window, number: int) -> str:
    return f"{segment.path(layout.LOG)}: at position {window.rows[number * kernel.ROW + kernel.POSITION]}"


def _malformed(segment: Segment, window: Window, number: int) -> CorruptRecordError:
    return CorruptRecordError(f"{_place(segment, window, number)}: a record is malformed")
