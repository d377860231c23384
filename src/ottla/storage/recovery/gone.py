"""Partitions that a checkpoint tells of and that lie nowhere: their directories were removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.names import TopicPartition
from ottla.storage import layout, losses
from ottla.storage.losses import Loss
from ottla.storage.recovery.opened_dir import OpenedDir


def lost_partitions(
    opened: Iterable[OpenedDir], there: set[TopicPartition]
) -> Iterator[tuple[OpenedDir, TopicPartition]]:
    """Those that had records on disk. A deleted one is renamed first, and then leaves the checkpoints."""
    for log_dir in opened:
        for partition, offset in end_offsets(log_dir).items():
            start_offset = log_dir.start_offsets.get(partition, 0)
            if offset > start_offset and partition not in there and partition.topic != layout.METADATA_TOPIC:
                yield log_dir, partition


def end_offsets(opened: OpenedDir) -> dict[TopicPartition, int]:
    """How far the logs of a directory were on disk, as far as is known."""
    if opened.recovery_points is None:
        return opened.high_watermarks if opened.clean else {}
    return opened.recovery_points


def note(opened: OpenedDir, partition: TopicPartition, now_ms: int) -> None:
    """Make the directory anew, with nothing in it but what is missing."""
    fs, path = opened.dir.fs, f"{opened.dir.path}/{partition}"
    fs.make_dir(path)
    fs.sync_dir(opened.dir.path)
    start_offset, end_offset = opened.start_offsets.get(partition, 0), end_offsets(opened)[partition]
    reason = f"the directory {path} is gone; its log was on disk up to {end_offset}"
    losses.note(
        fs, path, [Loss(losses.START, str(partition), start_offset, end_offset, reason, found_ms=now_ms)]
    )
