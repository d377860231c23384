"""The leader epochs of a partition that this broker leads, its own included.

A log knows an epoch from its first record on. A leader knows its own from the moment it leads: whoever asks where an
older epoch ends is told so before the new leader has appended anything.
"""

from __future__ import annotations

from ottla.replica.partition import Partition
from ottla.replica.results import EpochEnd
from ottla.storage.log.leader_epochs import end_offset_for
from ottla.storage.log.log import Log


def known_epochs(partition: Partition, log: Log) -> list[tuple[int, int]]:
    """(epoch, start offset), oldest first, as they will be written with the next record."""
    entries, end_offset = log.epochs.entries, log.end_offset
    if entries and entries[-1][0] >= partition.leader_epoch:
        return entries
    # An epoch that wrote nothing leaves no trace.
    return [*(entry for entry in entries if entry[1] < end_offset), (partition.leader_epoch, end_offset)]


def end_of_epoch(partition: Partition, log: Log, epoch: int) -> EpochEnd:
    """The largest epoch at or below the one asked for, and where it ends; -1 where that is not known."""
    return EpochEnd(*end_offset_for(known_epochs(partition, log), epoch, log.end_offset))
