"""Notices what is missing of a log while it is loaded, keeps what is cut, and puts losses on record.

A loss is on record before anything is changed to fit it: before a file is cut, and before epochs, snapshots and
checkpoints follow the log that is left.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ottla.records import check_kernel, kernel
from ottla.storage import layout, losses, quarantine
from ottla.storage.find_batch import find_batch, good_batches
from ottla.storage.fs import File, FileSystem
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.losses import Loss
from ottla.storage.quarantine import Piece
from ottla.storage.recovery.witnesses import Expected, Hole, Span, holes
from ottla.storage.scan import Scan

_CHUNK_BYTES = 1 << 20


class Missing:
    """What is known to be missing of one log, and what there is to say about it."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        now_ms: int,
        found_by: str,
        expected: Expected,
        *,
        start_offset: int,
        on_record: bool,
    ) -> None:
        self._fs = fs
        self._path = path
        self._now_ms = now_ms
        self._found_by = found_by
        self.expected = expected
        self._start_offset = max(start_offset, expected.start_offset or 0)
        self.known = losses.read(fs, path).losses if on_record else []
        self.notices: list[str] = []  # what costs no record that was known to be on disk

    @property
    def open(self) -> list[Loss]:
        """What is on record and not acknowledged."""
        return [loss for loss in self.known if not loss.is_acknowledged]

    def explains(self, first_offset: int, end_offset: int) -> bool:
        """Whether all these offsets are on record as lost, and the log was to go on behind them. Where a recovery found
        them missing it was to end: if something still follows, that recovery was cut short."""
        known = [loss for loss in self.known if loss.found_by != losses.RECOVERY]
        return not losses.uncovered(first_offset, end_offset, known)

    # -- what is cut

    def cutting(self, segment: Segment, next_base: int | None, expected_offset: int, flags: int) -> None:
        """What lies behind `segment.size` in its file is about to be cut; `expected_offset` should come there."""
        file, position, size = segment.file, segment.size, segment.file.size()
        limit = segment.base_offset + MAX_RELATIVE_OFFSET if next_base is None else next_base
        found = good_batches(file, position, size, expected_offset, limit)
        flushed_end = self.expected.end_offset if next_base is None else min(self.expected.end_offset, limit)
        end_offset = max(found.end_offset if found.batches else expected_offset, flushed_end)
        is_zero = _is_zero(file, position, size)
        why = "there are only zeros" if is_zero else _why(file, position, size, flags)
        if end_offset > expected_offset:
            kept_in = self._keep(segment, position, size, why) if found.batches else None
            self._note(
                segment.path(layout.LOG), expected_offset, end_offset, why, position, size - position, found.batches,
                kept_in,
            )  # fmt: skip
        elif not is_zero:
            self.notices.append(
                f"{segment.path(layout.LOG)}: the last {size - position} bytes, at position {position}, are not a"
                f" whole batch ({why}) and were cut off; the log ends at offset {expected_offset}"
            )

    def dropping(self, segment: Segment, why: str) -> None:
        """A segment behind the place where the log is cut is about to go."""
        limit = segment.base_offset + MAX_RELATIVE_OFFSET
        found = good_batches(segment.file, 0, segment.size, segment.base_offset, limit)
        if found.batches:
            kept_in = self._keep(segment, 0, segment.size, why)
            self._note(
                segment.path(layout.LOG), segment.base_offset, found.end_offset, why, 0, segment.size, found.batches,
                kept_in,
            )  # fmt: skip

    def setting_aside(self, segment: Segment, why: str) -> None:
        """A segment that does not belong here is about to go."""
        kept_in = self._keep(segment, 0, segment.size, why)
        self.notices.append(f"{segment.path(layout.LOG)}: {why}; kept aside in {kept_in}")

    def _keep(self, segment: Segment, position: int, end: int, why: str) -> str:
        # Bytes that are kept without it would say that gaps were left on purpose.
        losses.begin(self._fs, self._path)
        path = f"{self._path}/{quarantine.file_name(segment.base_offset)}"
        log = f"{self._path}/{layout.segment_file(segment.base_offset, layout.LOG)}"
        quarantine.keep(self._fs, log, [Piece(position, end, why)], path)
        self._fs.sync_dir(self._path)
        return path.rpartition("/")[2]

    # -- what is not there

    def look_inside(self, segment: Segment, end_offset: int) -> None:
        """Read a segment that was changed after it was last flushed. What is damaged in it stays as it is."""
        file, size, limit = segment.file, segment.size, segment.base_offset + MAX_RELATIVE_OFFSET
        expected, position = segment.base_offset, 0
        while position < size:
            scan = Scan(file, size, start=position)
            for window in scan:
                expected = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
            damaged = scan.position
            if damaged >= size:
                return
            found = find_batch(file, damaged + 1, size, expected, limit)
            position = size if found is None else found
            next_offset = end_offset if found is None else int.from_bytes(file.pread(8, found), "big")
            why = f"damaged there: {kernel.STATUS_MEANING[scan.status]}"
            size_bytes = position - damaged
            self._note(segment.path(layout.LOG), expected, next_offset, why, damaged, size_bytes, 0)

    def judge(self, segments: Iterable[Segment], end_of: dict[int, int], *, may_have_gaps: bool) -> None:
        """Compare what is there with what must be."""
        segments = list(segments)
        spans = [
            Span(
                segment.path(layout.LOG).rpartition("/")[2], segment.base_offset, end_of[segment.base_offset]
            )
            for segment in segments
        ]
        found = holes(spans, self.expected, may_have_gaps=may_have_gaps)
        log_end = spans[-1].end_offset if spans else 0
        inside = [hole for hole in found if hole.first_offset < log_end and self._news(hole, self.known)]
        # A log that was compacted once, and is no more, has holes that nobody remembers.
        if inside and any(was_compacted(segment, self.known) for segment in segments if segment.size):
            inside = [hole for hole in inside if hole.end_offset <= spans[0].base_offset]
        for hole in found:
            if hole.first_offset >= log_end:
                # It may have been lost before, and written again since: only the same end is no news.
                known = [loss for loss in self.open if loss.end_offset == hole.end_offset]
            elif hole in inside:
                known = list(self.known)
            else:
                continue
            for first_offset, end_offset in self._news(hole, known):
                self._note(f"{self._path}/{hole.file}", first_offset, end_offset, hole.reason)

    @staticmethod
    def _news(hole: Hole, known: list[Loss]) -> list[tuple[int, int]]:
        return losses.uncovered(hole.first_offset, hole.end_offset, known)

    def _note(
        self,
        path: str,
        first_offset: int,
        end_offset: int,
        reason: str,
        position: int | None = None,
        size_bytes: int | None = None,
        batches: int | None = None,
        kept_in: str | None = None,
    ) -> None:
        file = path.rpartition("/")[2]
        first_offset = max(first_offset, self._start_offset)  # what was deleted is not lost
        if first_offset >= end_offset:
            return
        loss = Loss(
            self._found_by, file, first_offset, end_offset, reason, position, size_bytes, batches, kept_in,
            self._now_ms,
        )  # fmt: skip
        self.known += losses.note(self._fs, self._path, [loss])


def was_compacted(segment: Segment, known: list[Loss]) -> bool:
    """Whether batches lost records, or are missing between others: a cleaner leaves both, a lost file neither."""
    state = array("q", bytes(8 * check_kernel.CHECK_STATE))
    state[check_kernel.EXPECTED_OFFSET] = segment.base_offset
    for column in (
        check_kernel.PREVIOUS_BASE, check_kernel.PREVIOUS_EXPECTED, check_kernel.EPOCH, check_kernel.EPOCH_ENTRY,
        check_kernel.LARGEST_TIMESTAMP, check_kernel.RESUME_OFFSET,
    ):  # fmt: skip
        state[column] = -1
    found = array("q", bytes(8 * check_kernel.FOUND))
    for window in Scan(segment.file, segment.size, flags=0):
        check_kernel.check_rows(window.rows, window.count, state, array("q"), found)
    end_offset = state[check_kernel.EXPECTED_OFFSET]
    on_record = sum(segment.base_offset <= loss.first_offset < end_offset for loss in known)
    return bool(state[check_kernel.THIN_BATCHES]) or state[check_kernel.GAPS] > on_record


def _why(file: File, position: int, size: int, flags: int) -> str:
    scan = Scan(file, size, start=position, flags=flags)
    if next(iter(scan), None) is not None:
        return "the offsets of the batch there do not follow"
    return kernel.STATUS_MEANING[scan.status]


def _is_zero(file: File, start: int, end: int) -> bool:
    while start < end:
        data = file.pread(min(_CHUNK_BYTES, end - start), start)
        if not data or data.strip(b"\0"):
            return not data
        start += len(data)
    return True
