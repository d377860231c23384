"""`ottla log repair`: shows what a repair does, and does it when told to."""

from __future__ import annotations

import sys
from dataclasses import asdict

from ottla.cli.json_text import to_json
from ottla.cli.log_output import finding_line
from ottla.cli.log_progress import progress_bar
from ottla.logtools.findings import DEFECT, Finding, Findings
from ottla.logtools.repair import RepairPlan, Step, apply_repair, plan_repair
from ottla.logtools.repair_checkpoints import apply_checkpoints, plan_checkpoints
from ottla.logtools.source import DataDir, NotALogError, Partition, SideFile, Target, partitions_of
from ottla.logtools.verify_data_dir import check_own_files, surroundings
from ottla.logtools.writing import data_dir_of, locked
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.layout import TopicPartition


def run(fs: FileSystem, target: Target, *, write: bool, skip_corrupt: bool, as_json: bool) -> bool:
    """Whether nothing is left that this does not mend."""
    if isinstance(target, SideFile) or (isinstance(target, Partition) and not target.whole):
        raise NotALogError(
            "repair works on a partition or a data directory; give the directory that the file lies in"
        )
    if not write:
        return _repair(fs, target, write=False, skip_corrupt=skip_corrupt, as_json=as_json)
    data_dir = target.path if isinstance(target, DataDir) else data_dir_of(fs, target.path)
    with locked(fs, data_dir):
        return _repair(fs, target, write=True, skip_corrupt=skip_corrupt, as_json=as_json)


def _repair(fs: FileSystem, target: Target, *, write: bool, skip_corrupt: bool, as_json: bool) -> bool:
    tally = Tally(write=write, as_json=as_json)
    with progress_bar(fs, target, "repair") as on_progress:
        for partition in partitions_of(fs, target):
            plan = plan_repair(
                fs, partition, surroundings(fs, partition), on_progress, skip_corrupt=skip_corrupt
            )
            tally.tell(plan)
            if write and plan.steps:
                apply_repair(fs, plan)
            tally.add(partition, plan)
    if isinstance(target, DataDir):
        tally.mend_checkpoints(fs, target)
    return tally.finish()


class Tally:
    """Tells what is done to each log and to the data directory, and counts."""

    def __init__(self, *, write: bool, as_json: bool) -> None:
        self._write = write
        self._as_json = as_json
        self._skippable = 0
        self._ends: dict[TopicPartition, int] = {}
        self.steps: list[Step] = []
        self.left: list[Finding] = []

    def tell(self, plan: RepairPlan) -> None:
        self._show(plan.steps, plan.needs_skip, plan.unmended)
        self._skippable += len(plan.needs_skip)

    def add(self, partition: Partition, plan: RepairPlan) -> None:
        """The plan was carried out, if that was asked for."""
        if partition.topic_partition is not None and not layout.parse_marked_dir(partition.name):
            self._ends[partition.topic_partition] = plan.end_offset

    def mend_checkpoints(self, fs: FileSystem, target: DataDir) -> None:
        planned = plan_checkpoints(fs, target.path, self._ends)
        own = Findings()
        check_own_files(fs, target, own)
        unmended = [finding for finding in own.all() if finding.level == DEFECT]
        self._show([step for step, _ in planned], [], unmended)
        if self._write:
            apply_checkpoints(fs, planned)

    def finish(self) -> bool:
        """Whether nothing is left that this does not mend."""
        if not self._as_json:
            print(_summary(len(self.steps), len(self.left), self._skippable, write=self._write))
        return not self.left

    def _show(self, steps: list[Step], needs_skip: list[Finding], unmended: list[Finding]) -> None:
        _show(steps, needs_skip, unmended, as_json=self._as_json, write=self._write)
        self.steps += steps
        self.left += [*needs_skip, *unmended]


def _show(
    steps: list[Step], needs_skip: list[Finding], unmended: list[Finding], *, as_json: bool, write: bool
) -> None:
    for step in steps:
        print(to_json({**asdict(step), "done": write}) if as_json else _step_line(step))
    for finding in [*needs_skip, *unmended]:
        how = "skip-corrupt" if finding in needs_skip else "not mended"
        print(to_json({**finding.as_json(), "action": how}) if as_json else f"{how}: {finding_line(finding)}")
    sys.stdout.flush()


def _step_line(step: Step) -> str:
    where = step.file if step.position is None else f"{step.file} at position {step.position}"
    return f"{step.action}: {where}: {step.meaning}"


def _summary(steps: int, left: int, skippable: int, *, write: bool) -> str:
    if not steps and not left:
        return "nothing to mend"
    text = f"{steps} steps done" if write else f"{steps} steps to do; nothing was changed, --write does it"
    if skippable:
        text += f"; {skippable} bad batches stay: --skip-corrupt takes them out and keeps what follows"
    elif left:
        text += f"; {left} defects cannot be mended here: take those files from another replica or a backup"
    return text
