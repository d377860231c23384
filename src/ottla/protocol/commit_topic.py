"""A topic of an OffsetCommit request in a form that costs little to read: see request_kernel.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition

Entry = tuple[int, int, int, str]  # of a partition: number, offset, leader epoch, metadata


def entries_of(
    partitions: Sequence[OffsetCommitRequestPartition] | Sequence[TxnOffsetCommitRequestPartition],
) -> list[Entry]:
    """The same of what others read."""
    return [
        (
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
        )
        for partition in partitions
    ]


class CommitTopic(OffsetCommitRequestTopic):
    """Its partitions are tuples, and become messages when somebody asks for them."""

    __slots__ = ("entries",)
    entries: list[Entry]

    def __eq__(self, other: object) -> bool:
        """Whoever reads a request may get either form."""
        return isinstance(other, OffsetCommitRequestTopic) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS
        )

    def __getattr__(self, name: str) -> Any:
        if name != "partitions":
            raise AttributeError(name)
        self.partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata=metadata,
            )
            for partition, offset, epoch, metadata in self.entries
        ]
        return self.partitions
