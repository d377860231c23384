"""What the replica manager is asked and what it answers: plain values, no behaviour."""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

from ottla.names import TopicPartition
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log.reader import Isolation

NO_ERROR: Final = 0
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
CONSUMER: Final = -1  # the replica id of a fetch that comes from a client


class AppendResult(NamedTuple):
    """What became of one partition's records. `record_errors` are (index in the batch, message)."""

    partition: TopicPartition
    error_code: int = NO_ERROR
    error_message: str | None = None
    base_offset: int = NO_OFFSET
    log_append_time: int = -1
    log_start_offset: int = NO_OFFSET
    record_errors: list[tuple[int, str]] | tuple[()] = ()


class FetchParams(NamedTuple):
    """What holds for all partitions of a fetch."""

    replica_id: int = CONSUMER
    max_wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 2**31 - 1
    isolation: Isolation = Isolation.HIGH_WATERMARK
    # Before Fetch v3 a batch that does not fit is cut, not sent whole: such clients notice it by that.
    hard_max_bytes: bool = False
    # Records that somebody here looks into come in memory of their own, and no more than this (or the first batch).
    copied_bytes: int = 0


class FetchEntry(NamedTuple):
    """What is wanted of one partition. `topic_id` is None where the client speaks in names."""

    partition: TopicPartition
    topic_id: uuid.UUID | None
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = NO_OFFSET  # a follower's own


class EpochEnd(NamedTuple):
    """Where an epoch ends in the leader's log."""

    epoch: int
    end_offset: int


class FetchResult(NamedTuple):
    """What one partition gives. `records` are to be sent one after another; they may end inside a batch."""

    partition: TopicPartition
    error_code: int = NO_ERROR
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted: list[AbortedTxn] | None = None  # None where the reader did not ask for committed records only
    records: list[memoryview] | bytes | None = None
    diverging_epoch: EpochEnd | None = None
    size_bytes: int = 0


class OffsetResult(NamedTuple):
    """An offset that was looked for; -1 where there is none."""

    partition: TopicPartition
    error_code: int = NO_ERROR
    timestamp: int = -1
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH


class EpochEndResult(NamedTuple):
    """The largest epoch at or below the one asked for, and where it ends; -1 where that is not known."""

    partition: TopicPartition
    error_code: int = NO_ERROR
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


class DeleteResult(NamedTuple):
    """What DeleteRecords did to a partition; the low watermark is the lowest log start of its replicas."""

    error_code: int = NO_ERROR
    low_watermark: int = NO_OFFSET


class ReplicaSize(NamedTuple):
    """A log in a directory. A future one is on its way there; `offset_lag` is what it has not copied yet."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int = 0
    is_future: bool = False


class LogDirInfo(NamedTuple):
    """A log directory and what lies in it."""

    path: str
    error_code: int = NO_ERROR
    total_bytes: int = -1
    usable_bytes: int = -1
    replicas: list[ReplicaSize] = []  # noqa: RUF012 - never changed
