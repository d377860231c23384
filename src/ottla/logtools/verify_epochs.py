"""Holds the leader epochs of batches against the epoch checkpoint.

Where they differ, it may be the batch or the checkpoint that is wrong: a single batch among others of its epoch
points at itself, an epoch none of whose batches agree points at the checkpoint.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.logtools.findings import Findings
from ottla.records import check_kernel, kernel

_NO_EPOCH = -1
_MAX_WRONG = 10_000  # more than that, and it is not the batches that are wrong
_CARRIED = (check_kernel.EPOCH, check_kernel.EPOCH_ENTRY, check_kernel.EPOCH_WRONG)


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
    """The epochs of one log while its batches go by."""

    findings: Findings
    path: str  # of the checkpoint
    entries: list[tuple[int, int]]  # (epoch, start offset)
    lines: list[int]  # where in the checkpoint each entry stands
    trimmed_below: int  # batches below may have no epoch in the checkpoint
    known: array[int] = field(init=False)
    wrong: list[WrongEpoch] = field(default_factory=list)
    _carried: list[int] = field(default_factory=lambda: [-1, -1, 0])
    _run: _Run | None = None

    def __post_init__(self) -> None:
        self.known = array("q", [number for entry in self.entries for number in entry])

    def begin_segment(self, state: array[int]) -> None:
        for column, value in zip(_CARRIED, self._carried, strict=True):
            state[column] = value

    def end_segment(self, state: array[int]) -> None:
        self._carried = [state[column] for column in _CARRIED]

    def event(self, kind: int, row: array[int], expected: int, begins_entry: bool, file: str) -> None:
        position, offset, epoch = row[kernel.POSITION], row[kernel.BASE_OFFSET], row[kernel.LEADER_EPOCH]
        if kind == check_kernel.EPOCH_FALLS:
            meaning = f"the batch says leader epoch {epoch}, but an earlier one says {expected}"
            self.findings.defect("leader-epoch", file, meaning, position=position, offset=offset)
            return
        differs = kind == check_kernel.EPOCH_DIFFERS
        run = self._run
        if not (differs and run and not begins_entry and (run.epoch, run.by_checkpoint) == (epoch, expected)):
            self._end_run(next_epoch=expected if begins_entry else None)
            run = self._run = _Run(file, position, offset, epoch, expected, begins_entry) if differs else None
        if run is not None and len(run.batches) < _MAX_WRONG:
            run.batches.append((file, position, row[kernel.SIZE]))

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
            self.wrong += [WrongEpoch(*batch, run.by_checkpoint) for batch in run.batches]

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
