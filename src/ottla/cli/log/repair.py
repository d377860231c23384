"""`ottla log repair`: shows what a repair does, and does it when told to."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict

from ottla.cli.json_text import to_json
from ottla.cli.log.output import finding_line
from ottla.cli.log.progress import progress_bar
from ottla.logtools.findings import DEFECT, Finding, Findings
from ottla.logtools.listing import DataDir, NotALogError, Partition, SideFile, Target, all_partitions_of
from ottla.logtools.repair.checkpoints import apply_checkpoints, plan_checkpoints
from ottla.logtools.repair.log import bound_by, repair_log
from ottla.logtools.repair.plan import MISSING, RepairPlan, Step, plan_repair
from ottla.logtools.verify.data_dir import DataDirCheck, surroundings
from ottla.logtools.verify.log_report import LogReport
from ottla.logtools.verify.missing import check_record
from ottla.logtools.writing import data_dir_of, locked
from ottla.names import TopicPartition
from ottla.runtime import SystemRuntime
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.losses import Record

LOST = "lost-records"


def run(
    fs: FileSystem,
    target: Target,
    *,
    write: bool,
    skip_corrupt: bool,
    as_json: bool,
    aside: str | None = None,
) -> bool:
    """Whether nothing is left that this does not mend."""
    if isinstance(target, SideFile) or (isinstance(target, Partition) and not target.whole):
        raise NotALogError(
            "repair works on a partition or a data directory; give the directory that the file lies in"
        )
    if not write:
        return _repair(fs, target, write=False, skip_corrupt=skip_corrupt, as_json=as_json, aside=aside)
    data_dir = target.path if isinstance(target, DataDir) else data_dir_of(fs, target.path)
    with locked(fs, data_dir):
        return _repair(fs, target, write=True, skip_corrupt=skip_corrupt, as_json=as_json, aside=aside)


def _repair(
    fs: FileSystem, target: Target, *, write: bool, skip_corrupt: bool, as_json: bool, aside: str | None
) -> bool:
    with progress_bar(fs, target, "repair") as on_progress, closing(SystemRuntime()) as runtime:
        tally = Tally(write=write, as_json=as_json, now_ms=runtime.now_ms())
        for partition in all_partitions_of(fs, target):
            if write:
                plan = repair_log(
                    fs,
                    partition,
                    skip_corrupt=skip_corrupt,
                    now_ms=tally.now_ms,
                    aside=aside,
                    tell=tally.tell_steps,
                    on_progress=on_progress,
                )
                bound_by(fs, plan)
            else:
                around = surroundings(fs, partition)
                plan = plan_repair(fs, partition, around, on_progress, skip_corrupt=skip_corrupt)
                tally.tell_steps([*plan.steps, *plan.later])
            tally.add(partition, plan)
    tally.finish_data_dir(fs, target, aside)
    return tally.finish()


class Tally:
    """Tells what is done to each log and to the data directory, and counts."""

    def __init__(self, *, write: bool, as_json: bool, now_ms: int) -> None:
        self._write = write
        self._as_json = as_json
        self.now_ms = now_ms
        self._skippable = 0
        self._ends: dict[TopicPartition, int] = {}
        self._reports: list[tuple[Partition, LogReport]] = []
        self.steps: list[Step] = []
        self.left: list[Finding] = []

    def tell_steps(self, steps: list[Step]) -> None:
        for step in steps:
            print(to_json({**asdict(step), "done": self._write}) if self._as_json else _step_line(step))
        sys.stdout.flush()
        self.steps += steps

    def add(self, partition: Partition, plan: RepairPlan) -> None:
        """What is left of a log's defects, after its steps were done if that was asked for."""
        self._tell_left(plan.needs_skip, "skip-corrupt")
        self._tell_left(plan.unmended, "not mended")
        self._skippable += len(plan.needs_skip)
        plan.report.findings, plan.report.checks = Findings(), []  # there may be thousands of partitions
        self._reports.append((partition, plan.report))
        name = partition.topic_partition
        if name is not None and plan.end_is_known and not layout.parse_marked_dir(partition.name):
            self._ends[name] = plan.end_offset

    def finish_data_dir(self, fs: FileSystem, target: Target, aside: str | None = None) -> None:
        """Mend the checkpoints, then hold them against the logs once more."""
        if not isinstance(target, DataDir):
            return
        planned = plan_checkpoints(fs, target.path, self._ends)
        self.tell_steps([step for step, _ in planned])
        if self._write:
            for directory, loss in apply_checkpoints(fs, planned, self._ends, self.now_ms, aside):
                noted = Findings()
                check_record(noted, directory, Record([loss], []))
                self._tell_left(noted.all(), "not mended")
        check = DataDirCheck(fs, target)
        mended = {step.file for step, _ in planned}
        for partition, report in self._reports:
            check.add(partition, report)
        found = [*check.own.all(), *check.finish().all()]
        left = [f for f in found if f.level == DEFECT and (self._write or f.file not in mended)]
        self._tell_left(left, "not mended")

    def finish(self) -> bool:
        """Whether nothing is left that this does not mend."""
        if not self._as_json:
            print(_summary(self.steps, self.left, self._skippable, write=self._write))
        return not self.left

    def _tell_left(self, left: list[Finding], how: str) -> None:
        for finding in left:
            if self._as_json:
                print(to_json({**finding.as_json(), "action": how}))
            else:
                print(f"{how}: {finding_line(finding)}")
        sys.stdout.flush()
        self.left += left


def _step_line(step: Step) -> str:
    where = step.file if step.position is None else f"{step.file} at position {step.position}"
    return f"{step.action}: {where}: {step.meaning}"


def _summary(steps: list[Step], left: list[Finding], skippable: int, *, write: bool) -> str:
    if not steps and not left:
        return "nothing to mend"
    done = f"{len(steps)} step{'' if len(steps) == 1 else 's'}"
    parts = [f"{done} done" if write else f"{done} to do; nothing was changed, --write does it"]
    lost = [finding for finding in left if finding.code == LOST]
    missing = [finding for finding in left if finding.code in MISSING]
    others = len(left) - skippable - len(lost) - len(missing)
    if skippable:
        parts.append(f"{skippable} bad batches stay: --skip-corrupt takes them out and keeps what follows")
    if missing:
        parts.append(
            "records are missing: restore their files from a backup or another replica, or give them up with"
            " --skip-corrupt"
        )
    if lost:
        parts.append(
            "records are lost, as listed above: restore them from a backup or another replica, or acknowledge the"
            " loss with `ottla log losses DIRECTORY --acknowledge`"
        )
    if others:
        parts.append(
            f"{others} defects cannot be mended here: take those files from another replica or a backup"
        )
    return "; ".join(parts)
