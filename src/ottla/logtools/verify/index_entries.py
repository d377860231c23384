"""Holds the entries of a segment's offset and time index against its batches.

An offset entry points at the beginning of a batch and names its last offset. Kafka before 4.0 wrote one entry for
several batches that were appended together: it points at the first and names the last offset of the last. A time
entry names a batch (before 4.0 sometimes a record in it) with a larger timestamp than all before it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

from ottla.errors import CorruptRecordError
from ottla.logtools.findings import DEFECT, Finding, Findings
from ottla.logtools.index_files import IndexFile
from ottla.logtools.verify.segment_facts import Gap
from ottla.records import batch, check_kernel, kernel
from ottla.storage.batch_reader import batch_bytes, read_records
from ottla.storage.fs import File
from ottla.storage.scan import Window

_FOUND_AT_ONCE = 256
_BAD_OFFSET_ENTRY = "offset-index-entry"
_BAD_TIME_ENTRY = "time-index-entry"


@dataclass(slots=True)
class _Joint:
    """An offset entry that names a later batch's offset: one for several batches, or a wrong one."""

    slot: int
    offset: int
    position: int
    of_old_format: bool


@dataclass(slots=True)
class EntryChecks:
    """The checks of one segment's two indexes, window by window."""

    findings: Findings
    base_offset: int
    offset_index: IndexFile | None
    time_index: IndexFile | None
    gaps: list[Gap] = field(default_factory=list)
    joint_entries: int = 0
    doubtful: list[Finding] = field(default_factory=list)  # defects unless this log has joint entries
    _waiting: list[_Joint] = field(default_factory=list)
    _offset_slot: int = 0
    _time_slot: int = 0
    _largest: int = -1
    _found: array[int] = field(
        default_factory=lambda: array("q", bytes(8 * check_kernel.FOUND * _FOUND_AT_ONCE))
    )
    _time_offsets: set[int] | None = None

    def window(self, file: File, window: Window) -> None:
        if self.offset_index is not None:
            self._check_offsets(self.offset_index, window)
            if self._waiting:
                self._settle(self.offset_index, window)
        if self.time_index is not None:
            self._check_times(self.time_index, file, window)

    # -- the offset index

    def _check_offsets(self, index: IndexFile, window: Window) -> None:
        self._offset_slot, count = check_kernel.check_offset_entries(
            window.rows,
            window.count,
            index.data,
            self._offset_slot,
            index.entries,
            self.base_offset,
            self._found,
        )
        for kind, slot, second, third in self._taken(count, index.path, _BAD_OFFSET_ENTRY):
            relative, position = index[slot]
            offset = self.base_offset + relative
            if any(gap.position <= position < gap.end for gap in self.gaps):
                continue
            if kind == check_kernel.PAST_BATCH:
                of_old_format = window.rows[second * kernel.ROW + kernel.MAGIC] < batch.MAGIC_V2
                self._waiting.append(_Joint(slot, offset, position, of_old_format))
                continue
            if kind == check_kernel.NOT_ASCENDING:
                meaning = (
                    f"entry {slot} (offset {offset}, position {position}) does not lie past the one before it"
                )
            elif kind == check_kernel.NO_BATCH:
                meaning = f"entry {slot} points at position {position}, where no batch begins"
            else:
                meaning = f"entry {slot} says offset {offset}, but the batch at position {position} ends with {third}"
            self._bad_offset_entry(index, slot, meaning)

    def _settle(self, index: IndexFile, window: Window) -> None:
        """Find the batches that joint entries name, which lie at or after the ones that they point at."""
        last_offsets = window.rows[kernel.LAST_OFFSET : window.count * kernel.ROW : kernel.ROW]
        still_waiting = []
        for joint in self._waiting:
            if joint.offset > last_offsets[-1]:
                still_waiting.append(joint)
                continue
            at = bisect_left(last_offsets, joint.offset)
            named = window.rows[at * kernel.ROW + kernel.POSITION]
            is_last = joint.slot + 1 == index.entries
            if last_offsets[at] != joint.offset or not (is_last or named < index[joint.slot + 1][1]):
                self.findings.add(self._bad_joint(joint))
            elif joint.offset in self._offsets_with_times():
                self.joint_entries += 1
            elif not joint.of_old_format:
                self.doubtful.append(self._bad_joint(joint))
        self._waiting = still_waiting

    def _bad_joint(self, joint: _Joint) -> Finding:
        assert self.offset_index is not None
        where = f"the batch at position {joint.position}"
        meaning = f"entry {joint.slot} says offset {joint.offset}, which is not that of {where}"
        path, position = self.offset_index.path, joint.slot * self.offset_index.entry.size
        return Finding(DEFECT, _BAD_OFFSET_ENTRY, path, meaning, position, joint.offset)

    def _offsets_with_times(self) -> set[int]:
        """The offsets in the time index: an entry is added to both at once, so that they bear each other out."""
        if self._time_offsets is None:
            index = self.time_index
            slots = range(index.entries if index else 0)
            self._time_offsets = {self.base_offset + index[slot][1] for slot in slots if index}
        return self._time_offsets

    def _bad_offset_entry(self, index: IndexFile, slot: int, meaning: str) -> None:
        position, offset = slot * index.entry.size, self.base_offset + index[slot][0]
        self.findings.defect(_BAD_OFFSET_ENTRY, index.path, meaning, position=position, offset=offset)

    # -- the time index

    def _check_times(self, index: IndexFile, file: File, window: Window) -> None:
        self._time_slot, count, self._largest = check_kernel.check_time_entries(
            window.rows,
            window.count,
            index.data,
            self._time_slot,
            index.entries,
            self.base_offset,
            self._largest,
            self._found,
        )
        for kind, slot, offset, number in self._taken(count, index.path, _BAD_TIME_ENTRY):
            if any(gap.from_offset <= offset < gap.to_offset for gap in self.gaps):
                continue
            row = window.rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            timestamp = index[slot][0]
            if kind == check_kernel.NOT_ASCENDING:
                meaning = f"entry {slot} (timestamp {timestamp}, offset {offset}) does not lie past the one before it"
            elif kind == check_kernel.NO_BATCH:
                meaning = f"entry {slot} says offset {offset}, which no batch holds"
            elif kind == check_kernel.WRONG_TIMESTAMP:
                largest = row[kernel.MAX_TIMESTAMP]
                meaning = f"entry {slot} says timestamp {timestamp}, but the batch with offset {offset} has {largest}"
            elif kind == check_kernel.NOT_LARGEST:
                meaning = f"entry {slot} says that timestamp {timestamp} is new at offset {offset}, but it came before"
            elif _is_first_with(file, window, row, offset, timestamp):
                continue
            else:
                meaning = f"entry {slot} says offset {offset}, which is not where timestamp {timestamp} was first seen"
            self._bad_time_entry(index, slot, meaning)

    def _bad_time_entry(self, index: IndexFile, slot: int, meaning: str) -> None:
        position, offset = slot * index.entry.size, self.base_offset + index[slot][1]
        self.findings.defect(_BAD_TIME_ENTRY, index.path, meaning, position=position, offset=offset)

    # -- the end of the segment

    def finish(self, *, is_torn: bool) -> None:
        """What is left points behind the last batch. That is only harmless if the last batch is torn."""
        for joint in self._waiting:
            self.findings.add(self._bad_joint(joint))
        for index, first, code in (
            (self.offset_index, self._offset_slot, _BAD_OFFSET_ENTRY),
            (self.time_index, self._time_slot, _BAD_TIME_ENTRY),
        ):
            if index is None or first >= index.entries:
                continue
            many = (
                f"entries {first} to {index.entries - 1} point"
                if index.entries - first > 1
                else f"entry {first} points"
            )
            meaning = f"{many} behind the last whole batch"
            add = self.findings.note if is_torn else self.findings.defect
            offset = self.base_offset + index[first][index is self.time_index]
            add(code, index.path, meaning, position=first * index.entry.size, offset=offset)

    def check_last_time(self, largest: int) -> None:
        """A segment that is no longer written to has its largest timestamp as the time index's last entry."""
        index = self.time_index
        if index is None or self.gaps or largest < 0:
            return
        last = index[index.entries - 1][0] if index.entries else -1
        if last < largest:
            self.findings.defect(
                "time-index-short",
                index.path,
                f"the last entry says timestamp {last}, but the segment's largest is {largest}: lookups miss it",
                position=max(0, index.entries - 1) * index.entry.size,
            )

    def _taken(self, count: int, path: str, code: str) -> list[tuple[int, int, int, int]]:
        self.findings.uncounted(DEFECT, code, path, count - _FOUND_AT_ONCE)
        width = check_kernel.FOUND
        return [
            (self._found[at], self._found[at + 1], self._found[at + 2], self._found[at + 3])
            for at in range(0, min(count, _FOUND_AT_ONCE) * width, width)
        ]


def _is_first_with(file: File, window: Window, row: array[int], offset: int, timestamp: int) -> bool:
    """Whether `offset` is the first record of its batch with that timestamp: what Kafka before 4.0 may name."""
    try:
        records = read_records(batch_bytes(file, window, row), row)
        first = next((record.offset for record in records if record.timestamp == timestamp), None)
    except CorruptRecordError:
        return False
    return first == offset
