"""Checks that nothing is missing: what checkpoints, epochs and the record of losses say against what is there."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.errors import CorruptCheckpointError
from ottla.logtools.findings import Findings
from ottla.logtools.listing import Partition
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.names import TopicPartition
from ottla.storage import checkpoint, layout, losses
from ottla.storage.fs import FileSystem
from ottla.storage.losses import Record, offsets_text
from ottla.storage.recovery.witnesses import Expected, Hole, Span, Witness, expect, holes

_ADVICE = "restore them from a backup or another replica before a broker starts here"


def check_record(findings: Findings, directory: str, record: Record) -> None:
    """Losses stay defects until somebody has acknowledged them."""
    path = f"{directory}/{losses.FILE}"
    for loss in record.losses:
        found = f"found by {loss.found_by}"
        if loss.is_acknowledged:
            meaning = f"{loss.describe()} ({found}, acknowledged)"
            findings.note("lost-records", path, meaning, offset=loss.first_offset)
        else:
            meaning = (
                f"{loss.describe()} ({found}); `ottla log losses {directory} --acknowledge` makes this a note"
            )
            findings.defect("lost-records", path, meaning, offset=loss.first_offset)
    if record.unreadable:
        meaning = (
            f"{len(record.unreadable)} lines of the record of losses are damaged: what they said is not known"
        )
        findings.defect("loss-record", path, meaning)


def check_ends(
    findings: Findings,
    fs: FileSystem,
    partition: Partition,
    checks: Sequence[SegmentFacts],
    epochs: Sequence[tuple[int, int]],
    witness: Witness,
    record: Record,
    *,
    is_clean: bool,
) -> list[Hole]:
    """The first and the last offset that must be there. Holes between are found while the log is read."""
    if any(facts.has_vanished or facts.is_unreadable for facts in checks):
        return []
    found: list[Hole] = []
    names = [
        *partition.leftovers,
        *(layout.segment_file(offset, layout.SNAPSHOT) for offset in partition.snapshots),
    ]
    expected = expect(witness, layout.segment_files(names), epochs, clean=is_clean)
    spans = [
        Span(facts.segment.file_name(layout.LOG), facts.segment.base_offset, facts.end_offset)
        for facts in checks
    ]
    for hole in holes(spans, expected, may_have_gaps=True):
        # An open loss at the same end is the same one: the checkpoints have not followed yet.
        known = [loss for loss in record.open if loss.end_offset == hole.end_offset]
        at_end = not spans or hole.first_offset >= spans[-1].end_offset
        if not losses.uncovered(hole.first_offset, hole.end_offset, known if at_end else record.losses):
            continue
        if at_end and not _still_says(fs, partition, expected):
            continue
        what = offsets_text(hole.first_offset, hole.end_offset)
        meaning = f"{what} are missing: {hole.reason}; {_ADVICE}"
        path = f"{partition.path}/{hole.file}"
        findings.defect("missing-records", path, meaning, offset=hole.first_offset)
        found.append(hole)
    return found


def _still_says(fs: FileSystem, partition: Partition, expected: Expected) -> bool:
    """A running broker that cuts a log lowers its recovery point first: then it is lower by now."""
    now = _recovery_points(fs, partition.path.rpartition("/")[0] or ".")
    if now is None or partition.topic_partition is None:
        return True
    return now.get(partition.topic_partition, expected.end_offset) >= expected.end_offset


def _recovery_points(fs: FileSystem, data_dir: str) -> dict[TopicPartition, int] | None:
    """The recovery points as the checkpoint has them now; None if it cannot be read."""
    try:
        return checkpoint.read_offsets(fs, f"{data_dir}/{layout.RECOVERY_POINTS}")
    except CorruptCheckpointError:
        return None


def check_lost_partition(
    findings: Findings,
    fs: FileSystem,
    data_dir: str,
    partition: TopicPartition,
    witness: Witness,
    position: int | None = None,
) -> None:
    """A checkpoint tells of a partition that has no directory. `ottla serve` may have made or deleted it meanwhile."""
    start, end = witness.start_offset or 0, witness.recovery_point or 0
    now = _recovery_points(fs, data_dir)
    if fs.exists(f"{data_dir}/{partition}") or (now is not None and partition not in now):
        return
    what = offsets_text(start, end)
    meaning = (
        f"there is no partition {partition}, which was on disk up to {end}: {what} are missing; {_ADVICE}"
    )
    path = f"{data_dir}/{layout.RECOVERY_POINTS}"
    findings.defect("missing-partition", path, meaning, position=position, offset=start)
