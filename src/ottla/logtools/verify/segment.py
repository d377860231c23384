"""Checks one segment: every batch and record of its log, and its indexes against them.

Base offsets and leader epochs are not covered by a batch's CRC. They are held against the segment's name, the
batches before and after, the index entries and the epoch checkpoint.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace

from ottla.errors import CorruptRecordError
from ottla.logtools.index_files import IndexFile, load_index
from ottla.logtools.listing import SegmentFiles, open_if_there, read_if_there
from ottla.logtools.verify.index_entries import EntryChecks
from ottla.logtools.verify.segment_facts import Gap, MissingOffsets, SegmentFacts, WrongBatch
from ottla.logtools.verify.tails import is_all_zero, is_whole_but_for_its_length
from ottla.logtools.walk import Damage, walk
from ottla.records import check_kernel, kernel
from ottla.storage import layout
from ottla.storage.batch_reader import batch_bytes, check_compressed
from ottla.storage.fs import File, FileSystem
from ottla.storage.scan import Window

_FLAGS = kernel.CHECK_CRC | kernel.CHECK_RECORDS
_ROWS = 512
_MAX_RELATIVE_OFFSET = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
Progress = Callable[[int], None]

_CODES = {
    kernel.TRUNCATED: "truncated-batch",
    kernel.BAD_LENGTH: "bad-length",
    kernel.BAD_MAGIC: "bad-magic",
    kernel.BAD_CRC: "bad-crc",
    kernel.BAD_ATTRIBUTES: "bad-attributes",
    kernel.BAD_COUNT: "bad-count",
    kernel.BAD_OFFSETS: "bad-offsets",
    kernel.BAD_RECORD: "bad-record",
}


def check_segment(
    fs: FileSystem, segment: SegmentFiles, next_base: int | None, epochs: array[int], on_progress: Progress
) -> SegmentFacts:
    """Check one segment by itself; `epochs` is what the log's epoch checkpoint says (epoch, start offset, ...)."""
    return _SegmentCheck(fs, SegmentFacts(segment, next_base), epochs, on_progress).run()


class _SegmentCheck:
    """One pass over one segment."""

    def __init__(
        self, fs: FileSystem, facts: SegmentFacts, epochs: array[int], on_progress: Progress
    ) -> None:
        self.fs = fs
        self.facts = facts
        self.segment, self.next_base, self.findings = facts.segment, facts.next_base, facts.findings
        self.on_progress = on_progress
        self._known_epochs = epochs
        self._state = array("q", bytes(8 * check_kernel.CHECK_STATE))
        self._found = array("q", bytes(8 * check_kernel.FOUND * 2 * _ROWS))
        self._last_row: array[int] = array("q")
        self._open_gap: Gap | None = None
        self._overlaps = 0  # which of the wrong ones came last
        # Indexes first: what they say was in the log before they said it, also while a writer goes on.
        self.entries = EntryChecks(
            self.findings, self.segment.base_offset, self._index(layout.INDEX), self._index(layout.TIME_INDEX)
        )
        facts.txn_index = self._txn_index()

    def run(self) -> SegmentFacts:
        try:
            return self._run()
        except OSError as error:
            self.findings.unreadable(self.segment.path(layout.LOG), error)
            return self._unreadable()

    def _unreadable(self) -> SegmentFacts:
        """Nothing is known of its batches: they are taken to reach up to the next segment."""
        facts = SegmentFacts(self.segment, self.next_base, self.findings, is_unreadable=True, is_broken=True)
        facts.end_offset = self.segment.base_offset if self.next_base is None else self.next_base
        return facts

    def _run(self) -> SegmentFacts:
        facts, path = self.facts, self.segment.path(layout.LOG)
        facts.end_offset = self.segment.base_offset
        file = open_if_there(self.fs, path)
        if file is None:
            self.findings.note("vanished", path, "the file was removed while it was being checked")
            facts.end_offset = facts.end_offset if self.next_base is None else self.next_base
            facts.has_vanished = True
            return facts
        try:
            self._walk(file)
        finally:
            file.close()
        self._finish()
        facts.joint_entries, facts.doubtful_entries = self.entries.joint_entries, self.entries.doubtful
        return facts

    def _index(self, suffix: str) -> IndexFile | None:
        if self.segment.name:
            return None
        path = self.segment.path(suffix)
        try:
            index = load_index(self.fs, path, suffix, self.segment.base_offset)
        except OSError as error:
            self.findings.unreadable(path, error)
            return None
        if index is None:
            if self.segment.size:
                add = self.findings.note if self.next_base is None else self.findings.defect
                add("missing-index", path, "the file is missing; a broker rebuilds it when it starts")
            return None
        if index.odd_bytes:
            whole = len(index.data) - index.odd_bytes
            meaning = f"{len(index.data)} bytes are not a multiple of {index.entry.size}"
            self.findings.defect("index-size", path, meaning, position=whole)
        if index.zeros:
            meaning = f"the last {index.zeros} entries are zeros: room for more that was not given back"
            self.findings.note("zero-tail", path, meaning, position=index.entries * index.entry.size)
        return index

    def _txn_index(self) -> bytes | None:
        path = self.segment.path(layout.TXN_INDEX)
        try:
            return None if self.segment.name else read_if_there(self.fs, path)
        except OSError as error:
            self.findings.unreadable(path, error)
            return None

    # -- the log

    def _walk(self, file: File) -> None:
        state = self._state
        state[check_kernel.EXPECTED_OFFSET] = self.segment.base_offset
        state[check_kernel.LARGEST_TIMESTAMP] = -1
        for column in (
            check_kernel.PREVIOUS_BASE,
            check_kernel.PREVIOUS_EXPECTED,
            check_kernel.RESUME_OFFSET,
            check_kernel.EPOCH,
            check_kernel.EPOCH_ENTRY,
        ):
            state[column] = -1
        found: Window | Damage
        max_offset = _MAX_OFFSET if self.next_base is None else self.next_base
        end = file.size()
        done = 0
        for found in walk(
            file, end, flags=_FLAGS, min_offset=self.segment.base_offset, max_offset=max_offset
        ):
            if isinstance(found, Damage):
                self._damage(file, found, end)
                at = found.end
            else:
                self._window(file, found)
                at = self._last_row[kernel.POSITION] + self._last_row[kernel.SIZE]
            self.on_progress(at - done)
            done = at
        self.on_progress(max(0, self.segment.size - done))
        self.facts.epochs.finish(state)
        self.facts.end_offset = state[check_kernel.EXPECTED_OFFSET]

    def _window(self, file: File, window: Window) -> None:
        rows, count, state = window.rows, window.count, self._state
        if self._open_gap is not None:
            self._close_gap(rows[kernel.BASE_OFFSET])
        self.facts.epochs.window(window)
        found = check_kernel.check_rows(rows, count, state, self._known_epochs, self._found)
        for at in range(
            0, min(found, len(self._found) // check_kernel.FOUND) * check_kernel.FOUND, check_kernel.FOUND
        ):
            kind, number, expected, third = self._found[at : at + check_kernel.FOUND]
            row = rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            if kind == check_kernel.OVERLAP:
                previous = rows[(number - 1) * kernel.ROW : number * kernel.ROW] if number else self._last_row
                self._overlap(row, previous, expected, third)
            elif kind == check_kernel.RESUMES:
                wrong = self.facts.wrong
                wrong[self._overlaps] = replace(wrong[self._overlaps], base_offset=expected)
            else:
                self.facts.epochs.event(kind, row, expected, bool(third))
        self._check_compressed(file, window)
        self.facts.producers.window(file, window, self.findings)
        self.entries.window(file, window)
        self._last_row = rows[(count - 1) * kernel.ROW : count * kernel.ROW]

    def _overlap(self, row: array[int], previous: array[int], expected: int, should_be: int) -> None:
        """Two batches claim the same offsets: one of their base offsets is wrong."""
        if should_be < 0 and self._is_out_of_range(previous) and not self._is_out_of_range(row):
            base = previous[kernel.BASE_OFFSET]
            meaning = f"the batch says base offset {base}, past the next segment's {self.next_base}"
            self._overlaps = len(self.facts.wrong)
            self._wrong_offset(previous, meaning, None)
            return
        wrong = row if should_be < 0 else previous
        at_least = expected if should_be < 0 else should_be
        base = wrong[kernel.BASE_OFFSET]
        if should_be >= 0:
            meaning = (
                f"the batch says base offset {base}, but the ones around it leave only {at_least} for it"
            )
        elif len(previous) == 0:
            meaning = f"the first batch says base offset {base}, below the segment's own {at_least}"
        else:
            meaning = f"the batch says base offset {base}, but the one before it ends with {at_least - 1}"
        self._overlaps = len(self.facts.wrong)
        self._wrong_offset(wrong, meaning, at_least if should_be >= 0 else None)

    def _is_out_of_range(self, row: array[int]) -> bool:
        return len(row) > 0 and self.next_base is not None and row[kernel.LAST_OFFSET] >= self.next_base

    def _wrong_offset(self, row: array[int], meaning: str, right: int | None) -> None:
        self._defect("base-offset", meaning, row[kernel.POSITION], row[kernel.BASE_OFFSET])
        self.facts.wrong.append(WrongBatch(row[kernel.POSITION], row[kernel.SIZE], meaning, right))

    def _check_compressed(self, file: File, window: Window) -> None:
        keep = array("q", bytes(8 * window.count))
        numbers = keep[: check_kernel.codec_rows(window.rows, window.count, keep)]
        if window.data is None and not numbers:
            numbers = array("q", [0])  # too large for the kernel's walk over its records
        for number in numbers:
            row = window.rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            try:
                check_compressed(batch_bytes(file, window, row), row)
            except CorruptRecordError as error:
                meaning = f"the CRC matches, but the records cannot be read: {error}"
                self._defect("bad-record", meaning, row[kernel.POSITION], row[kernel.BASE_OFFSET])
                self.facts.wrong.append(WrongBatch(row[kernel.POSITION], row[kernel.SIZE], meaning))

    def _defect(self, code: str, meaning: str, position: int, offset: int | None) -> None:
        path = self.segment.path(layout.LOG)
        self.findings.defect(code, path, meaning, position=position, offset=offset)

    # -- what is damaged

    def _damage(self, file: File, damage: Damage, end: int) -> None:
        self.facts.damages.append(damage)
        expected = self._state[check_kernel.EXPECTED_OFFSET]
        self._open_gap = Gap(damage.position, damage.end, expected, _MAX_OFFSET)
        self.entries.gaps.append(self._open_gap)
        self.facts.gaps.append(self._open_gap)
        if damage.is_tail and self.next_base is None and self._is_harmless_tail(file, damage, end):
            return
        self.facts.is_broken = True
        size = damage.end - damage.position
        if damage.status == kernel.TRUNCATED and damage.size > size:
            meaning = (
                f"the batch says it has {damage.size} bytes, but there are {size} before the {_next(damage)}"
            )
        else:
            meaning = f"{damage.meaning} ({size} bytes up to the {_next(damage)})"
        self._defect(_CODES.get(damage.status, "bad-batch"), meaning, damage.position, expected)

    def _is_harmless_tail(self, file: File, damage: Damage, end: int) -> bool:
        """Zeros of a preallocated file, or a batch whose writer was stopped half-way; noted if so."""
        path = self.segment.path(layout.LOG)
        expected = self._state[check_kernel.EXPECTED_OFFSET]
        size = end - damage.position
        if is_all_zero(file, damage.position, end):
            meaning = f"the last {size} bytes are zeros: a preallocated file, or a write that was cut off"
            self.findings.note("zero-tail", path, meaning, position=damage.position)
            self.facts.is_zero_tail = True
        elif damage.status == kernel.TRUNCATED and not is_whole_but_for_its_length(
            file, damage.position, end
        ):
            meaning = (
                f"the last batch is torn: {size} bytes of it are there; a broker cuts them off when it starts"
            )
            self.findings.note("torn-batch", path, meaning, position=damage.position, offset=expected)
        else:
            return False
        self.facts.is_torn = True
        return True

    def _close_gap(self, next_offset: int) -> None:
        """Offsets between a damage and the batch behind it belong to what is damaged."""
        assert self._open_gap is not None
        self._open_gap.to_offset = max(next_offset, self._open_gap.from_offset)
        self._state[check_kernel.EXPECTED_OFFSET] = self._open_gap.to_offset
        self._state[check_kernel.RESUME_OFFSET] = -1
        self._open_gap = None

    # -- the end

    def _finish(self) -> None:
        facts, state = self.facts, self._state
        self.entries.finish(is_torn=facts.is_torn)
        if self.next_base is not None:
            self.entries.check_last_time(state[check_kernel.LARGEST_TIMESTAMP])
        is_last = self.next_base is None
        facts.txn_index_end = self._offset_at(self.segment.size) if is_last else facts.end_offset
        self._check_range()
        facts.lost_records = state[check_kernel.THIN_BATCHES] > 0
        if state[check_kernel.GAPS]:
            facts.missing = MissingOffsets(
                self.segment.path(layout.LOG),
                state[check_kernel.FIRST_GAP_POSITION],
                state[check_kernel.FIRST_GAP_OFFSET],
                state[check_kernel.FIRST_GAP_SIZE],
                state[check_kernel.GAPS],
            )

    def _offset_at(self, position: int) -> int:
        """Up to where a transaction index that was read at the beginning must be complete."""
        grew = self._last_row and self._last_row[kernel.POSITION] + self._last_row[kernel.SIZE] > position
        return self.segment.base_offset if grew else self.facts.end_offset

    def _check_range(self) -> None:
        if not self._last_row:
            return
        last = self._last_row[kernel.LAST_OFFSET]
        if self.next_base is not None and last >= self.next_base:
            meaning = (
                f"the last batch ends with offset {last}, but the next segment begins at {self.next_base}"
            )
            self._wrong_offset(self._last_row, meaning, None)
        elif last - self.segment.base_offset > _MAX_RELATIVE_OFFSET:
            meaning = f"offset {last} is too far from the segment's base offset {self.segment.base_offset}"
            self._wrong_offset(self._last_row, meaning, None)


def _next(damage: Damage) -> str:
    return "end of the file" if damage.is_tail else "next good batch"
