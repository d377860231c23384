"""Give a stopped Kafka broker a partition directory that it did not write itself."""

from __future__ import annotations

import shutil
from pathlib import Path

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CHECKPOINTS = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
KEPT = "partition.metadata"


def adopt_partition(data_dir: Path, partition: str, source: Path) -> None:
    """Replace the files of a partition by those of `source`; the topic's id stays the one Kafka gave it."""
    target = data_dir / partition
    for path in target.iterdir():
        if path.name != KEPT:
            path.unlink()
    for path in source.iterdir():
        if path.name != KEPT:
            shutil.copy(path, target / path.name)


def adopt_checkpoints(data_dir: Path, source: Path) -> None:
    """Take over the lines of another data directory's checkpoints: log starts, recovery points, high watermarks."""
    for checkpoint in CHECKPOINTS:
        for line in (source / checkpoint).read_text().splitlines()[2:]:
            topic, partition, offset = line.split(" ")
            set_checkpoint(data_dir, checkpoint, topic, int(partition), int(offset))


def set_checkpoint(data_dir: Path, checkpoint: str, topic: str, partition: int, offset: int) -> None:
    """Change one partition's line in an offset checkpoint file, or add it."""
    path = data_dir / checkpoint
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    start = f"{topic} {partition} "
    lines = [line for line in lines if not line.startswith(start)] + [f"{start}{offset}"]
    path.write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")


def forget_clean_shutdown(data_dir: Path) -> None:
    """Make the last stop look unclean, so that the broker recovers its logs."""
    (data_dir / CLEAN_SHUTDOWN).unlink()
