"""Raises the high watermark where something other than an append allows it, and wakes who waits for that."""

from __future__ import annotations

from ottla.replica.lanes import Lanes
from ottla.replica.partition import Partition
from ottla.replica.waits import Purgatories


class Watermarks:
    """For partitions that this broker leads."""

    def __init__(self, lanes: Lanes, purgatories: Purgatories) -> None:
        self._lanes = lanes
        self._purgatories = purgatories

    def update(self, partition: Partition) -> None:
        """The replicas in sync, or how far they are, have changed."""
        log = partition.log
        if log is None or not partition.is_leader or log.dir.offline:
            return
        if partition.is_lent:
            self._lanes.on(
                partition,
                partition.raise_high_watermark,
                lambda moved, _: self._purgatories.high_watermark_moved(partition) if moved else None,
            )
        elif partition.raise_high_watermark(log):
            self._purgatories.high_watermark_moved(partition)
