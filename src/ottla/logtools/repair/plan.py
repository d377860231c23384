"""Says what would mend a log that was checked. Nothing is changed here; log.py does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.logtools.findings import DEFECT, Finding
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.repair.names import moving_files
from ottla.logtools.verify.log import verify_log
from ottla.logtools.verify.log_report import LogReport, Surroundings
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.logtools.verify.strangers import CODES, RENAME, SET_ASIDE, UNDECIDED, Stranger
from ottla.logtools.writing import Edit
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.losses import REPAIR, Loss, offsets_text

Progress = Callable[[int], None]
_BLOCKING = ("unreadable", CODES[UNDECIDED])  # while these are there, nobody can say what is healthy
_DERIVED_CODES = (
    "missing-index",
    "index-size",
    "offset-index-entry",
    "time-index-entry",
    "time-index-short",
    "txn-index-size",
    "txn-index-entry",
    "txn-index-missing",
    "bad-snapshot",
    "snapshot-differs",
    "stray-snapshot",
    "epoch-checkpoint",
)


MISSING = ("gap", "missing-records")
_NAME_CODES = (*CODES.values(), "interrupted-repair")
_MOVED = (*layout.SEGMENT_SUFFIXES, layout.SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a repair does."""

    action: str  # rename, set-aside, cut, quarantine, patch, rebuild, remove, give-up
    file: str
    meaning: str
    position: int | None = None
    size: int | None = None


@dataclass(slots=True)
class RepairPlan:
    """What to do to one partition, and what cannot be done."""

    partition: Partition
    end_offset: int = 0
    steps: list[Step] = field(default_factory=list)
    unmended: list[Finding] = field(default_factory=list)
    needs_skip: list[Finding] = field(default_factory=list)  # could be mended with skip_corrupt
    strangers: list[Stranger] = field(default_factory=list)
    given_up: list[Loss] = field(default_factory=list)  # missing offsets that no step brings back
    # Steps that become possible once these are done, as far as is known.
    later: list[Step] = field(default_factory=list)
    edits: list[tuple[SegmentFiles, list[Edit]]] = field(default_factory=list)
    cuts: list[tuple[SegmentFiles, Edit]] = field(default_factory=list)
    rebuild: set[str] = field(default_factory=set)
    report: LogReport = field(default_factory=LogReport)
    was_changed: bool = False

    @property
    def end_is_known(self) -> bool:
        """Whether the log's end is what it should be, or what is missing there is on record."""
        return not self.report.is_damaged and not any(
            finding.code in (*_BLOCKING, *MISSING) for finding in self.unmended
        )

    @property
    def changes_log(self) -> bool:
        return bool(self.edits or self.cuts)


def plan_repair(
    fs: FileSystem, partition: Partition, around: Surroundings, on_progress: Progress, *, skip_corrupt: bool
) -> RepairPlan:
    """Check a partition, and say what would mend it."""
    return plan_from(verify_log(fs, partition, around, on_progress), skip_corrupt=skip_corrupt)


def plan_from(report: LogReport, *, skip_corrupt: bool) -> RepairPlan:
    """What would mend a log that was checked."""
    defects = [finding for finding in report.findings.all() if finding.level == DEFECT]
    if any(finding.code in _BLOCKING for finding in defects):
        return RepairPlan(report.partition, report.end_offset, unmended=defects, report=report)
    rest = _plan_contents(report, defects, skip_corrupt=skip_corrupt)
    if not report.strangers and not moving_files(report.partition):
        if skip_corrupt and not rest.steps:
            _give_up(rest, report)
        return rest
    plan = RepairPlan(report.partition, report.end_offset, _name_steps(report), report=report)
    plan.strangers, plan.needs_skip, plan.unmended = report.strangers, rest.needs_skip, rest.unmended
    moved = {stranger.segment.path(suffix) for stranger in plan.strangers for suffix in _MOVED}
    plan.later = [step for step in rest.steps if step.file not in moved]
    return plan


def _name_steps(report: LogReport) -> list[Step]:
    steps = []
    for stranger in report.strangers:
        path = stranger.segment.path(layout.LOG)
        if stranger.verdict == RENAME:
            name = layout.segment_file(stranger.base_offset, layout.LOG)
            steps.append(Step("rename", path, f"to {name}: {stranger.meaning}"))
        elif stranger.verdict == SET_ASIDE:
            meaning = f"rename it to {path.rpartition('/')[2]}{layout.QUARANTINE}: {stranger.meaning}"
            steps.append(Step("set-aside", path, meaning))
    for name in moving_files(report.partition):
        path = f"{report.partition.path}/{name}"
        steps.append(Step("rename", path, "give it the name that an interrupted repair meant for it"))
    return steps


def _plan_contents(report: LogReport, defects: list[Finding], *, skip_corrupt: bool) -> RepairPlan:
    """What to do inside of the files."""
    plan = RepairPlan(report.partition, report.end_offset, report=report)
    handled: set[tuple[str, int | None]] = set()
    for check in report.checks:
        edits = _plan_log(plan, check, handled, skip_corrupt=skip_corrupt)
        edits += _plan_epochs(plan, check, report, handled, edits)
        if edits:
            plan.edits.append((check.segment, edits))
    for finding in defects:
        if (finding.file, finding.position) not in handled and finding.code not in _NAME_CODES:
            _plan_side_file(plan, finding, report, skip_corrupt=skip_corrupt)
    if plan.changes_log:
        _rebuild_all(plan)
    for path in sorted(plan.rebuild):
        action = "remove" if _is_stray_snapshot(plan.partition, path, report.end_offset) else "rebuild"
        what = (
            "no segment begins there, so a broker does not need it" if action == "remove" else "from the log"
        )
        plan.steps.append(Step(action, path, what))
    return plan


def _give_up(plan: RepairPlan, report: LogReport) -> None:
    """Offsets that are missing, when all else is mended: put them on record."""
    for hole in report.holes:
        plan.given_up.append(Loss(REPAIR, hole.file, hole.first_offset, hole.end_offset, hole.reason))
        what = offsets_text(hole.first_offset, hole.end_offset)
        plan.steps.append(
            Step("give-up", f"{plan.partition.path}/{hole.file}", f"put {what} on record as lost")
        )
    if report.holes:
        plan.unmended = [finding for finding in plan.unmended if finding.code not in MISSING]


def _plan_log(
    plan: RepairPlan, check: SegmentFacts, handled: set[tuple[str, int | None]], *, skip_corrupt: bool
) -> list[Edit]:
    path = check.segment.path(layout.LOG)
    edits = []
    for damage in check.damages:
        handled.add((path, damage.position))
        edit = Edit(damage.position, damage.end, damage.meaning)
        size = damage.end - damage.position
        if damage.is_tail and check.next_base is None:
            if not check.is_zero_tail:
                plan.cuts.append((check.segment, edit))
                meaning = f"copy the last {size} bytes aside and cut them off: {damage.meaning}"
                plan.steps.append(Step("cut", path, meaning, damage.position, size))
        elif skip_corrupt:
            edits.append(edit)
            meaning = f"copy {size} bytes aside and take them out of the log: {damage.meaning}"
            plan.steps.append(Step("quarantine", path, meaning, damage.position, size))
        else:
            handled.discard((path, damage.position))
    for wrong in check.wrong:
        handled.add((path, wrong.position))
        edit = Edit(wrong.position, wrong.position + wrong.size, wrong.meaning, wrong.base_offset)
        if wrong.base_offset is not None:
            edits.append(edit)
            meaning = f"set the batch's base offset to {wrong.base_offset}: {wrong.meaning}"
            plan.steps.append(Step("patch", path, meaning, wrong.position, wrong.size))
        elif skip_corrupt:
            edits.append(edit)
            meaning = f"copy the batch aside and take it out of the log: {wrong.meaning}"
            plan.steps.append(Step("quarantine", path, meaning, wrong.position, wrong.size))
        else:
            handled.discard((path, wrong.position))
    return edits


def _plan_epochs(
    plan: RepairPlan,
    check: SegmentFacts,
    report: LogReport,
    handled: set[tuple[str, int | None]],
    others: list[Edit],
) -> list[Edit]:
    path = check.segment.path(layout.LOG)
    taken = {edit.position for edit in others} | {wrong.position for wrong in check.wrong}
    edits = []
    for wrong in report.wrong_epochs:
        if wrong.file == path and wrong.position not in taken:
            handled.add((path, wrong.position))
            meaning = f"set the batch's leader epoch to {wrong.leader_epoch}, as the epoch checkpoint says"
            plan.steps.append(Step("patch", path, meaning, wrong.position, wrong.size))
            end = wrong.position + wrong.size
            edits.append(Edit(wrong.position, end, meaning, leader_epoch=wrong.leader_epoch))
    return edits


def _plan_side_file(plan: RepairPlan, finding: Finding, report: LogReport, *, skip_corrupt: bool) -> None:
    if finding.code in _DERIVED_CODES:
        plan.rebuild.add(finding.file)
        return
    in_log = any(
        finding.file == check.segment.path(layout.LOG)
        and finding.position in ({d.position for d in check.damages} | {w.position for w in check.wrong})
        for check in report.checks
    )
    (plan.needs_skip if in_log and not skip_corrupt else plan.unmended).append(finding)


def _rebuild_all(plan: RepairPlan) -> None:
    """A changed log changes the indexes of its segment, and from there on what is known of producers."""
    changed = [segment for segment, _ in plan.edits] + [segment for segment, _ in plan.cuts]
    first = min(segment.base_offset for segment in changed)
    for segment in changed:
        plan.rebuild |= {segment.path(layout.INDEX), segment.path(layout.TIME_INDEX)}
    for segment in plan.partition.segments:
        if segment.base_offset >= first and layout.TXN_INDEX in segment.sizes:
            plan.rebuild.add(segment.path(layout.TXN_INDEX))
    for offset in plan.partition.snapshots:
        if offset > first:
            plan.rebuild.add(f"{plan.partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}")


def _is_stray_snapshot(partition: Partition, path: str, end_offset: int) -> bool:
    parsed = layout.parse_segment_file(path.rpartition("/")[2])
    if parsed is None or parsed.suffix != layout.SNAPSHOT:
        return False
    return parsed.base_offset not in partition.bases[1:] and parsed.base_offset != end_offset
