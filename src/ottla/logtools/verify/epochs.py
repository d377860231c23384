"""Holds the leader epochs of batches against the epoch checkpoint.

Where they differ, it may be the batch or the checkpoint that is wrong: a single batch among others of its epoch
points at itself, an epoch none of whose batches agree points at the checkpoint.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.logtools.findings import Findings
from ottla.records import batch, check_kernel, kernel
from ottla.storage.scan import Window

_NO_EPOCH = -1
_MAX_WRONG = 10_000  # more than that, and it is not the batches that are wrong


@dataclass(slots=True)
class EpochEvent:
    """Where a batch begins, or ceases, to contradict the checkpoint; with those that follow it in the same way."""

    kind: int
    position: int
    offset: int
    epoch: int
    expected: int
    begins_entry: bool  # it is the first batch of its checkpoint entry
    batches: list[tuple[int, int]] = field(default_factory=list)  # position, size

    @property
    def differs(self) -> bool:
        return self.kind == check_kernel.EPOCH_DIFFERS

    def goes_on_with(self, later: EpochEvent) -> bool:
        same = (self.epoch, self.expected) == (later.epoch, later.expected)
        return self.differs and later.differs and same and not later.begins_entry


@dataclass(slots=True)
class EpochTrace:
    """The epochs of one segment, checked as if nothing lay before it."""

    events: list[EpochEvent] = field(default_factory=list)
    first: EpochEvent | None = None  # the first batch with an epoch, whatever it says
    last_epoch: int = -1
    last_entry: int = -1
    is_wrong: bool = False  # the last batch contradicts the checkpoint

    def window(self, window: Window) -> None:
        if self.first is None:
            magics = window.rows[kernel.MAGIC : window.count * kernel.ROW : kernel.ROW]
            if batch.MAGIC_V2 in magics:
                at = magics.index(batch.MAGIC_V2) * kernel.ROW
                row = window.rows[at : at + kernel.ROW]
                self.first = _event(check_kernel.EPOCH_AGREES, row, -1, begins_entry=False)

    def event(self, kind: int, row: array[int], expected: int, begins_entry: bool) -> None:
        event = _event(kind, row, expected, begins_entry=begins_entry)
        last = self.events[-1] if self.events else None
        if last is None or not last.goes_on_with(event):
            self.events.append(event)
        elif len(last.batches) < _MAX_WRONG:
            last.batches += event.batches

    def finish(self, state: array[int]) -> None:
        self.last_epoch, self.last_entry = state[check_kernel.EPOCH], state[check_kernel.EPOCH_ENTRY]
        self.is_wrong = bool(state[check_kernel.EPOCH_WRONG])


def _event(kind: int, row: array[int], expected: int, *, begins_entry: bool) -> EpochEvent:
    position, size = row[kernel.POSITION], row[kernel.SIZE]
    offset, epoch = row[kernel.BASE_OFFSET], row[kernel.LEADER_EPOCH]
    return EpochEvent(kind, position, offset, epoch, expected, begins_entry, [(position, size)])


@dataclass(slots=True)
class _Run:
    """Batches in a row that have the same wrong epoch."""

    file: str
    position: int
    offset: int
    epoch: int
    by_checkpoint: int
    from_entry_start: bool
    batches: list[tuple[str, int, int]] = field(default_factory=list)  # file, position, size


class WrongEpoch(NamedTuple):
    """A batch whose leader epoch can be put right."""

    file: str
    position: int
    size: int
    leader_epoch: int


@dataclass(slots=True)
class EpochChecks:
    """The epochs of one log while its segments go by."""

    findings: Findings
    path: str  # of the checkpoint
    entries: list[tuple[int, int]]  # (epoch, start offset)
    lines: list[int]  # where in the checkpoint each entry stands
    trimmed_below: int  # batches below may have no epoch in the checkpoint
    wrong: list[WrongEpoch] = field(default_factory=list)
    _epoch: int = -1
    _entry: int = -1
    _is_wrong: bool = False
    _run: _Run | None = None

    @property
    def known(self) -> array[int]:
        """The checkpoint, as the kernel takes it."""
        return array("q", [number for entry in self.entries for number in entry])

    def replay(self, trace: EpochTrace, file: str) -> None:
        """The next segment, as it was traced: what lay before it is put in now."""
        first, events = trace.first, trace.events
        if first is None:
            return
        if not self.entries and first.epoch < self._epoch:
            falls = replace(first, kind=check_kernel.EPOCH_FALLS, expected=self._epoch)
            events = [falls, *events]
        elif self.entries:
            entry = self._entry_of(first.offset)
            expected = self.entries[entry][0] if entry >= 0 else -1
            is_new = entry != self._entry
            if first.epoch != expected:
                events = [replace(events[0], begins_entry=is_new), *events[1:]]
            elif self._is_wrong:
                events = [replace(first, expected=expected, begins_entry=is_new), *events]
        for event in events:
            self._event(event, file)
        self._epoch, self._entry, self._is_wrong = trace.last_epoch, trace.last_entry, trace.is_wrong

    def _entry_of(self, offset: int) -> int:
        entry = -1
        while entry + 1 < len(self.entries) and self.entries[entry + 1][1] <= offset:
            entry += 1
        return entry

    def _event(self, event: EpochEvent, file: str) -> None:
        position, offset, epoch, expected = event.position, event.offset, event.epoch, event.expected
        if event.kind == check_kernel.EPOCH_FALLS:
            meaning = f"the batch says leader epoch {epoch}, but an earlier one says {expected}"
            self.findings.defect("leader-epoch", file, meaning, position=position, offset=offset)
            return
        run, is_new = self._run, event.begins_entry
        if not (event.differs and run and not is_new and (run.epoch, run.by_checkpoint) == (epoch, expected)):
            self._end_run(next_epoch=expected if is_new else None)
            run = self._run = _Run(file, position, offset, epoch, expected, is_new) if event.differs else None
        if run is not None:
            room = _MAX_WRONG - len(run.batches)
            run.batches += [(file, *place) for place in event.batches[:room]]

    def finish(self, end_offset: int) -> None:
        self._end_run(next_epoch=_NO_EPOCH)
        later = [*self.entries[1:], (2**31, 2**63)]
        for number, (epoch, start) in enumerate(self.entries):
            line = self.lines[number]
            later_epoch, later_start = later[number]
            if start > end_offset:
                meaning = f"epoch {epoch} begins at offset {start}, past the log's end {end_offset}"
                self.findings.defect("epoch-checkpoint", self.path, meaning, position=line, offset=start)
            elif epoch >= later_epoch or start >= later_start:
                meaning = (
                    f"epoch {epoch} at offset {start} is not below the next, {later_epoch} at {later_start}"
                )
                self.findings.defect("epoch-checkpoint", self.path, meaning, position=line, offset=start)

    def _end_run(self, *, next_epoch: int | None) -> None:
        """`next_epoch` is the checkpoint's next one if the run ends where that begins."""
        run, self._run = self._run, None
        if run is None:
            return
        if run.by_checkpoint == -1:
            self._before_first(run)
            return
        meaning = f"the batch says leader epoch {run.epoch}, the epoch checkpoint says {run.by_checkpoint}"
        self.findings.defect("leader-epoch", run.file, meaning, position=run.position, offset=run.offset)
        number = next((i for i, entry in enumerate(self.entries) if entry[0] == run.by_checkpoint), 0)
        begins_late = next_epoch == run.epoch and number + 1 < len(self.lines)
        begins_early = run.from_entry_start and number > 0 and self.entries[number - 1][0] == run.epoch
        if begins_late or begins_early or (run.from_entry_start and next_epoch is not None):
            meaning = f"batches from offset {run.offset} on say epoch {run.epoch}, not {run.by_checkpoint}"
            line = self.lines[number + begins_late]
            self.findings.defect("epoch-checkpoint", self.path, meaning, position=line, offset=run.offset)
        else:
            self.wrong += [WrongEpoch(*place, run.by_checkpoint) for place in run.batches]

    def _before_first(self, run: _Run) -> None:
        meaning = f"no epoch is known for offset {run.offset}, whose batch says {run.epoch}"
        if run.offset < self.trimmed_below:
            self.findings.note(
                "epoch-checkpoint", self.path, f"{meaning}; records below it were deleted", offset=run.offset
            )
        else:
            self.findings.defect(
                "epoch-checkpoint", self.path, meaning, position=self.lines[0], offset=run.offset
            )
