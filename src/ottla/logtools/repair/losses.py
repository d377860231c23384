"""Works out which offsets a repair gives up, and puts them on record before anything is made to fit.

The record (storage/losses.py) stays beside the log until somebody acknowledges it; until then `verify` tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ottla.errors import CorruptCheckpointError
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.walk import Damage, walk
from ottla.logtools.writing import Edit, data_dir_of
from ottla.records import kernel
from ottla.storage import checkpoint, layout, losses
from ottla.storage.fs import FileSystem
from ottla.storage.losses import Loss

_MAX_OFFSET = 2**63 - 1


def losses_of(
    fs: FileSystem,
    segment: SegmentFiles,
    dropped: list[Edit],
    next_base: int | None,
    known_end: int,
    kept_in: str,
) -> list[Loss]:
    """The offsets that go with pieces of a segment: those between the batches that stay on both sides of them."""
    found: list[Loss] = []
    expected, run = segment.base_offset, list[Edit]()
    max_offset = next_base if next_base is not None else _MAX_OFFSET
    file = fs.open(segment.path(layout.LOG))
    try:
        found_there = walk(file, file.size(), min_offset=expected, max_offset=max_offset)
        for position, first, last in _batches(found_there):
            if any(edit.position <= position < edit.end for edit in dropped):
                continue
            run = [edit for edit in dropped if edit.position < position]
            dropped = [edit for edit in dropped if edit.position >= position]
            if run and first > expected:
                found.append(_loss(segment, run, expected, first, kept_in))
            expected = max(expected, last + 1)
    finally:
        file.close()
    last_offset = known_end if next_base is None else next_base
    if dropped and last_offset > expected:
        found.append(_loss(segment, dropped, expected, last_offset, kept_in))
    return found


def _batches(found: Iterable[object]) -> Iterator[tuple[int, int, int]]:
    for window in found:
        if not isinstance(window, Damage):
            rows = window.rows  # type: ignore[attr-defined]
            for at in range(0, window.count * kernel.ROW, kernel.ROW):  # type: ignore[attr-defined]
                yield rows[at + kernel.POSITION], rows[at + kernel.BASE_OFFSET], rows[at + kernel.LAST_OFFSET]


def _loss(segment: SegmentFiles, run: list[Edit], first_offset: int, end_offset: int, kept_in: str) -> Loss:
    return Loss(
        losses.REPAIR,
        segment.file_name(layout.LOG),
        first_offset,
        end_offset,
        run[0].meaning,
        position=run[0].position,
        size_bytes=sum(edit.end - edit.position for edit in run),
        kept_in=kept_in.removeprefix(f"{segment.directory}/"),
    )


def known_end(fs: FileSystem, partition: Partition) -> int:
    """Up to where the checkpoints of the data directory say that the log goes."""
    data_dir, name = data_dir_of(fs, partition.path), partition.topic_partition
    if data_dir is None or name is None:
        return 0
    ends = [0]
    for file in (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS):
        try:
            ends.append(checkpoint.read_offsets(fs, f"{data_dir}/{file}").get(name, 0))
        except CorruptCheckpointError:
            continue
    return max(ends)


def note_short(fs: FileSystem, directory: str, end_offset: int, known: int, now_ms: int) -> list[Loss]:
    """Put on record that a log ends before the offset up to which a checkpoint says that it goes; what was news."""
    on_record = losses.read(fs, directory).losses
    reason = f"a checkpoint says that the log goes up to {known}, and it ends at {end_offset}"
    return note(
        fs,
        directory,
        [
            Loss(losses.REPAIR, directory.rpartition("/")[2], first, end, reason)
            for first, end in losses.uncovered(end_offset, known, on_record)
        ],
        now_ms,
    )


def note(fs: FileSystem, directory: str, given_up: list[Loss], now_ms: int) -> list[Loss]:
    return losses.note(fs, directory, [replace(loss, found_ms=now_ms) for loss in given_up])
