"""Mends a log, as plan.py says.

In this order: files get the names that their batches call for; then batches that cannot stay are set aside and taken
out of their log, a torn tail is cut, and every damaged file that follows from the log (indexes, snapshots, leader
epochs) is built anew. Each step leaves a log that a broker can open. After each round the log is checked again, so that
what is said to be left is what `verify` says. What needs space comes first: on a full disk the log stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.logtools import listing
from ottla.logtools.derive import derive
from ottla.logtools.findings import DEFECT, Finding
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.repair import losses as repair_losses
from ottla.logtools.repair.names import moving_files, put_in_place
from ottla.logtools.repair.plan import Progress, RepairPlan, Step, plan_repair
from ottla.logtools.verify.data_dir import surroundings
from ottla.logtools.writing import (
    Edit,
    NoSpaceError,
    bound_checkpoints,
    copy_aside,
    data_dir_of,
    finish_rewrites,
    move_aside,
    quarantine_path,
    rewrite_log,
    set_aside,
)
from ottla.storage import checkpoint, layout, losses
from ottla.storage.checkpoint import replace_file
from ottla.storage.fs import FileSystem, is_out_of_space
from ottla.storage.losses import Loss

_ROUNDS = 6  # names, batches, what follows from them; more only if something goes on changing
_SMALL_FILES_BYTES = 64 << 10  # records of losses, indexes, checkpoints


def repair_log(
    fs: FileSystem,
    partition: Partition,
    *,
    skip_corrupt: bool,
    now_ms: int,
    aside: str | None = None,
    tell: Callable[[list[Step]], None] = lambda _: None,
    on_progress: Progress = lambda _: None,
) -> RepairPlan:
    """Mend a log, round after round, until there is nothing more to do. What is returned says what is left.

    What is taken out goes to `aside`, a directory on another disk, or beside the log.
    """
    finish_rewrites(fs, partition.path, aside)
    plan = plan_repair(fs, partition, surroundings(fs, partition), on_progress, skip_corrupt=skip_corrupt)
    rounds = 0
    while rounds < _ROUNDS and (plan.steps or (rounds and _note_lower_end(fs, plan, now_ms))):
        rounds += 1
        mend(fs, plan, now_ms, aside)
        tell(plan.steps)
        partition = listing.list_partition(fs, partition.path)
        around = surroundings(fs, partition)
        plan = plan_repair(fs, partition, around, lambda _: None, skip_corrupt=skip_corrupt)
    plan.unmended += [Finding(DEFECT, "not-mended", step.file, step.meaning) for step in plan.steps]
    plan.was_changed = rounds > 0
    return plan


def _note_lower_end(fs: FileSystem, plan: RepairPlan, now_ms: int) -> bool:
    """Put on record what no checkpoint will tell of any more once it fits the log; whether there was anything."""
    known = repair_losses.known_end(fs, plan.partition)
    return plan.end_is_known and bool(
        repair_losses.note_short(fs, plan.partition.path, plan.end_offset, known, now_ms)
    )


def bound_by(fs: FileSystem, plan: RepairPlan) -> None:
    """After a repair no checkpoint may point past the log's end."""
    if plan.was_changed and plan.end_is_known:
        data_dir = data_dir_of(fs, plan.partition.path)
        bound_checkpoints(fs, data_dir, plan.partition.topic_partition, None, plan.end_offset)


def mend(fs: FileSystem, plan: RepairPlan, now_ms: int, aside: str | None = None) -> None:
    """One round: the part of a repair that lies in the partition's own directory."""
    try:
        if plan.strangers or moving_files(plan.partition):
            put_in_place(fs, plan.partition, plan.strangers)
        else:
            _mend_contents(fs, plan, now_ms, aside)
    except OSError as error:
        if not is_out_of_space(error):
            raise
        raise _no_space(fs, plan, aside) from error


def _mend_contents(fs: FileSystem, plan: RepairPlan, now_ms: int, aside: str | None) -> None:
    lost = [*plan.given_up, *(_losses(fs, plan, aside) if plan.changes_log else [])]
    owed = _note_if_there_is_room(fs, plan, lost, now_ms, aside)
    for segment, edits in plan.edits:
        cuts = [edit for cut_segment, edit in plan.cuts if cut_segment is segment]
        rewrite_log(fs, segment, [*edits, *cuts], aside)
    edited = [segment for segment, _ in plan.edits]
    for segment, cut in plan.cuts:
        if segment not in edited:
            _cut(fs, segment, cut, aside)
    if owed:  # what is built anew below makes room for it
        for path in plan.rebuild:
            if not path.endswith(layout.LEADER_EPOCHS):
                move_aside(fs, path, aside)
        repair_losses.note(fs, plan.partition.path, owed, now_ms)
    partition = listing.list_partition(fs, plan.partition.path)
    derived = derive(fs, partition)
    for path in sorted(plan.rebuild):
        if path.endswith(layout.LEADER_EPOCHS):
            copy_aside(fs, path, aside)
            checkpoint.write_epochs(fs, path, derived.epochs)
        else:
            _replace(fs, path, derived.files.get(path), aside)
    plan.end_offset = derived.end_offset


def _no_space(fs: FileSystem, plan: RepairPlan, aside: str | None) -> NoSpaceError:
    """How much is needed, and where. The log is as it was, or the next run goes on from there."""
    path = plan.partition.path
    pieces = sum(edit.end - edit.position for _, edits in plan.edits for edit in edits)
    pieces += sum(cut.end - cut.position for _, cut in plan.cuts)
    rewritten = max((segment.size for segment, _ in plan.edits), default=0)
    needed = pieces + rewritten + _SMALL_FILES_BYTES
    if aside is not None:
        needed = _SMALL_FILES_BYTES
    free = fs.space(path)[1]
    other = "" if aside is not None else ", or keep what is taken out on another disk with --quarantine-dir"
    return NoSpaceError(
        f"the disk of {path} is full: repair needs about {needed} bytes there, {free} are free; free some (`ottla log"
        f" trim` needs none){other}, then run it again"
    )


def _note_if_there_is_room(
    fs: FileSystem, plan: RepairPlan, lost: list[Loss], now_ms: int, aside: str | None
) -> list[Loss]:
    """Put losses on record. What does not fit is returned, for when there is room: it is listed on the other disk."""
    try:
        repair_losses.note(fs, plan.partition.path, lost, now_ms)
    except OSError as error:
        if aside is None or not is_out_of_space(error):
            raise
        return lost
    return []


def _losses(fs: FileSystem, plan: RepairPlan, aside: str | None) -> list[Loss]:
    """What goes with the pieces that are taken out. Holes that earlier repairs left, without a record, are not news."""
    if not plan.partition.has_quarantine and aside is None:
        losses.begin(fs, plan.partition.path)
    dropped: dict[int, tuple[SegmentFiles, list[Edit]]] = {}
    taken = [*plan.edits, *((segment, [cut]) for segment, cut in plan.cuts)]
    for segment, edits in taken:
        drops = [edit for edit in edits if edit.drops]
        if drops:
            dropped.setdefault(segment.base_offset, (segment, []))[1].extend(drops)
    known = repair_losses.known_end(fs, plan.partition)
    lost: list[Loss] = []
    for segment, drops in dropped.values():
        drops.sort(key=lambda edit: edit.position)
        next_base, kept_in = plan.partition.next_base(segment), quarantine_path(segment, aside)
        lost += repair_losses.losses_of(fs, segment, drops, next_base, known, kept_in)
    return lost


def _cut(fs: FileSystem, segment: SegmentFiles, cut: Edit, aside: str | None) -> None:
    set_aside(fs, segment, [cut], aside)
    fs.sync_dir(segment.directory)
    file = fs.open(segment.path(layout.LOG), write=True)
    try:
        file.truncate(cut.position)
        file.sync()
    finally:
        file.close()


def _replace(fs: FileSystem, path: str, data: bytes | None, aside: str | None) -> None:
    """Put a derived file in its place, or remove one that nothing calls for."""
    if data is None or not fs.exists(path) or fs.read_bytes(path) != data:
        move_aside(fs, path, aside)
        fs.sync_dir(path.rpartition("/")[0])
        if data is not None:
            replace_file(fs, path, data)
