"""The requests that wait: a produce for its replicas, a fetch for data, a delete-records for its replicas.

They keep offsets and the way to answer, never the bytes of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ottla.config import BrokerConfig
from ottla.errors import (
    BrokerError,
    NotEnoughReplicasAfterAppendError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
)
from ottla.names import TopicPartition
from ottla.replica.partition import Partition
from ottla.replica.purgatory import Purgatory, Waiter
from ottla.replica.results import AppendResult, DeleteResult, FetchEntry, FetchParams
from ottla.runtime import LoopRuntime
from ottla.storage.fs import ColdPagesError
from ottla.storage.log import reader as log_reader
from ottla.storage.log.segment import Segment

# About 64 MiB: a fetch that waits for one partition holds 3 KiB, and 600 bytes for each more.
MAX_FETCH_WEIGHT = 100_000


class Purgatories:
    """The three of a broker, and what wakes them."""

    def __init__(self, runtime: LoopRuntime, config: BrokerConfig) -> None:
        self.produce: Purgatory[Partition] = Purgatory(
            runtime, config.producer_purgatory_purge_interval_requests
        )
        self.fetch: Purgatory[Partition] = Purgatory(
            runtime, config.fetch_purgatory_purge_interval_requests, MAX_FETCH_WEIGHT
        )
        self.delete_records: Purgatory[Partition] = Purgatory(
            runtime, config.delete_records_purgatory_purge_interval_requests
        )
        # The partitions that somebody waits for.
        self.watched = (self.produce.watchers, self.fetch.watchers, self.delete_records.watchers)

    def sizes(self) -> dict[str, int]:
        """How many wait, by Kafka's names."""
        return {
            "Produce": self.produce.size,
            "Fetch": self.fetch.size,
            "DeleteRecords": self.delete_records.size,
        }

    def high_watermark_moved(self, partition: Partition) -> None:
        self.produce.check(partition)
        self.fetch.check(partition)
        self.delete_records.check(partition)

    def role_changed(self, partition: Partition) -> None:
        """Everybody asks again, and is told that the leader has moved, or the log gone."""
        self.high_watermark_moved(partition)


class Unreplicated(NamedTuple):
    """Records that are appended but not yet on every replica in sync; `place` is where in the results."""

    place: int
    partition: Partition
    required_offset: int
    leader_epoch: int


class DelayedProduce(Waiter[Partition]):
    """A produce with acks=all: done when the high watermark has reached all that it appended."""

    __slots__ = ("_pending", "_results")

    def __init__(
        self,
        results: list[AppendResult],
        pending: list[Unreplicated],
        done: Callable[[list[AppendResult]], None],
    ) -> None:
        super().__init__(partial(done, results))
        self._results = results
        self._pending = pending

    def can_complete(self, key: Partition | None) -> bool:
        self._pending = [
            entry
            for entry in self._pending
            if (key is not None and entry.partition is not key) or not self._is_decided(entry)
        ]
        return not self._pending

    def _is_decided(self, entry: Unreplicated) -> bool:
        partition = entry.partition
        try:
            log = partition.leader_log()
            if partition.leader_epoch != entry.leader_epoch:
                raise NotLeaderOrFollowerError(f"{partition.key} has another leader epoch now")
            if log.high_watermark < entry.required_offset:
                return False
            if partition.is_under_minimum(log):
                raise NotEnoughReplicasAfterAppendError(f"{partition.key} lost replicas after the append")
        except BrokerError as error:
            self._refuse(entry, error.code)
        return True

    def _refuse(self, entry: Unreplicated, code: int) -> None:
        # The offset stays: what was appended is there, and may yet be replicated.
        self._results[entry.place] = self._results[entry.place]._replace(error_code=code)

    def expire(self) -> None:
        for entry in self._pending:
            self._refuse(entry, RequestTimedOutError.code)
        self.complete()


class DelayedDeleteRecords(Waiter[Partition]):
    """A DeleteRecords: done when the logs of all replicas start where they were told to."""

    __slots__ = ("_pending", "_results")

    def __init__(
        self,
        results: dict[TopicPartition, DeleteResult],
        pending: list[tuple[Partition, int]],
        done: Callable[[dict[TopicPartition, DeleteResult]], None],
    ) -> None:
        super().__init__(partial(done, results))
        self._results = results
        self._pending = pending

    def can_complete(self, key: Partition | None) -> bool:
        self._pending = [
            (partition, offset)
            for partition, offset in self._pending
            if not self._is_decided(partition, offset)
        ]
        return not self._pending

    def _is_decided(self, partition: Partition, offset: int) -> bool:
        try:
            low_watermark = partition.low_watermark(partition.leader_log())
        except BrokerError as error:
            self._results[partition.key] = DeleteResult(error.code)
            return True
        self._results[partition.key] = DeleteResult(0, low_watermark)
        return low_watermark >= offset

    def expire(self) -> None:
        for partition, _ in self._pending:
            late = self._results[partition.key]
            self._results[partition.key] = late._replace(error_code=RequestTimedOutError.code)
        self.complete()


class DelayedFetch(Waiter[Partition]):
    """A fetch that found too little: done when there is enough, or when a partition has an error to tell."""

    __slots__ = ("_available", "_entries", "_params", "_starts", "_total")

    def __init__(
        self, params: FetchParams, entries: Sequence[tuple[Partition, FetchEntry]], answer: Callable[[], None]
    ) -> None:
        super().__init__(answer)
        self._params = params
        self._entries = dict(entries)
        self._available: dict[Partition, int] = {}
        self._total = 0
        self._starts: dict[Partition, tuple[Segment, int]] = {}  # where the data begins, once it is there

    def add(self, entries: Sequence[tuple[Partition, FetchEntry]]) -> None:
        """It waits for these too."""
        self._entries.update(entries)

    def can_complete(self, key: Partition | None) -> bool:
        if key is not None:
            return self._has_enough(key)
        return any(self._has_enough(partition) for partition in self._entries)

    def _has_enough(self, partition: Partition) -> bool:
        """Count what this partition has now; True if that is enough, or there is something to tell at once."""
        entry = self._entries[partition]
        try:
            log = partition.leader_log()
            partition.check_epoch(entry.current_leader_epoch)
            limit = partition.limit(log, self._params.isolation)
            if entry.fetch_offset >= limit:
                return entry.fetch_offset > log.end_offset
            if self._params.min_bytes <= 1 or partition.is_lent:
                return True  # how much there is, only the lane could say
            start = self._starts.get(partition)
            if start is None:
                start = self._starts[partition] = log_reader.start_of(log, entry.fetch_offset)
            available = log_reader.bytes_until(log, *start, limit)
        except (BrokerError, ColdPagesError):
            return True  # an error is told at once; what takes long to find is read and answered
        if available is None:
            return True
        available = min(available, entry.max_bytes)
        self._total += available - self._available.get(partition, 0)
        self._available[partition] = available
        return self._total >= self._params.min_bytes
