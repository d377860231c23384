"""Types and contracts of the loops over committed offsets; commit_kernel.py says what they are for."""

import uuid

from ottla.protocol.commit_topic import Entry

class CommittedOffset:
    """How far a group has come in a partition. Two are equal if they say so of the same offset, wherever written."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int  # set by old clients; else -1, and the broker's retention counts
    topic_id: uuid.UUID | None
    written_at: int  # its record's offset in the internal topic: says which of two commits is the later one

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp: int,
        expire_timestamp: int = -1,
        topic_id: uuid.UUID | None = None,
        written_at: int = -1,
    ) -> None: ...

def are_there(entries: list[Entry], count: int) -> bool:
    """Whether a topic of so many partitions has all of these."""

def partitions_of(entries: list[Entry]) -> tuple[int, ...]:
    """Their numbers."""

def longest_metadata(entries: list[Entry]) -> int:
    """In characters."""

def store_commits(
    stored: dict[int, CommittedOffset],
    entries: list[Entry],
    written_at: int,
    commit_timestamp: int,
    expire_timestamp: int,
    topic_id: uuid.UUID | None,
) -> None:
    """Put offsets into those of a topic, by partition; the first was written at `written_at`, the others behind it."""

def put_commits(
    out: bytearray,
    time_delta: int,
    offset_delta: int,
    key: bytes,
    entries: list[Entry],
    timestamp: int,
    tags: bytes,
) -> None:
    """Append the records of offsets, in version 4, to the records of a batch, the first with this delta.

    `key` is the key of each but for the partition; `tags` are given as they are written. Numbers must fit their fields.
    """
