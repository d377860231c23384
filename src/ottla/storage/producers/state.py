"""What a partition knows of its idempotent and transactional producers.

For each producer: its epoch, its last five batches (to recognise duplicates), and where its open transaction began.
The state is a pure function of the batches in the log; snapshots only save reading them all again. Rules for a
client's append are checked first and applied after the bytes are in the log, so that a failed write changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from ottla.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from ottla.storage.producers.quota import ProducerQuota
from ottla.storage.producers.snapshot_file import SnapshotEntry

NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
BATCHES_REMEMBERED = 5
_FORGOTTEN_AT_ONCE = 16  # as a part of all
_SEQUENCES = 2**31


class BatchSummary(NamedTuple):
    """One remembered batch of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTxn(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Producer:
    """One producer's state."""

    __slots__ = (
        "batches", "coordinator_epoch", "epoch", "is_partial", "last_timestamp", "producer_id",
        "txn_first_offset",
    )  # fmt: skip

    def __init__(self, producer_id: int, epoch: int = NO_EPOCH) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = NO_EPOCH
        self.last_timestamp = -1
        self.txn_first_offset = NO_OFFSET
        self.batches: list[BatchSummary] = []
        # It comes from a snapshot, which has one batch only; earlier ones are in the log.
        self.is_partial = False

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def begin_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []
            self.is_partial = False


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequences wrap from the largest int32 to 0."""
    return (sequence + increment) % _SEQUENCES


class ProducerState:
    """All producers of one partition, up to `end_offset`."""

    def __init__(self, expiration_ms: int) -> None:
        self.expiration_ms = expiration_ms
        self.quota: ProducerQuota | None = None  # while the log is opened there is none
        self.producers: dict[int, Producer] = {}
        self.end_offset = 0
        # First offset of each open transaction -> its producer; and of each ended one whose end is not yet replicated.
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}

    # -- a client's append: check, find duplicates, then apply

    def find_duplicate(
        self, producer_id: int, epoch: int, base_sequence: int, count: int
    ) -> BatchSummary | None:
        """The earlier batch that this one repeats, if it is among the last five."""
        producer = self.producers.get(producer_id)
        if producer is None or producer.epoch != epoch:
            return None
        last_sequence = add_to_sequence(base_sequence, count - 1)
        for batch in producer.batches:
            if batch.first_sequence == base_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def continues(self, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether this is what a producer without an open transaction has to send next."""
        producer = self.producers.get(producer_id)
        return (
            producer is not None
            and producer.epoch == epoch
            and producer.txn_first_offset == NO_OFFSET
            and producer.last_sequence + 1 == sequence
        )

    def check_append(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> None:
        """Raise unless this batch may be appended now. A coordinator's has no sequence, and so none to keep."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        if epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id}: epoch {epoch} is older than {producer.epoch}, which the log has seen"
            )
        if base_sequence != NO_SEQUENCE:
            self._check_sequence(producer, epoch, base_sequence)
        if producer.txn_first_offset != NO_OFFSET and not transactional:
            raise InvalidTxnStateError(
                f"producer {producer_id} has an open transaction; the batch is outside of it"
            )

    @staticmethod
    def _check_sequence(producer: Producer, epoch: int, base_sequence: int) -> None:
        if epoch != producer.epoch:
            if base_sequence != 0 and producer.epoch != NO_EPOCH:
                raise OutOfOrderSequenceError(
                    f"producer {producer.producer_id}: epoch {epoch} must begin at sequence 0, not {base_sequence}"
                )
        elif base_sequence != add_to_sequence(producer.last_sequence, 1):
            raise OutOfOrderSequenceError(
                f"producer {producer.producer_id}: sequence {base_sequence} does not follow {producer.last_sequence}"
            )

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Raise unless a coordinator of this epoch may end the producer's transaction."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        if epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id}: marker of epoch {epoch}, log at {producer.epoch}"
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"producer {producer_id}: coordinator epoch {coordinator_epoch} is older than "
                f"{producer.coordinator_epoch}"
            )

    def append_batch(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        count: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Apply a data batch that is in the log. Gaps are fine here: a follower or a compacted log has them."""
        producer = self._producer(producer_id)
        producer.begin_epoch(epoch)
        if base_sequence != NO_SEQUENCE:
            last_sequence = add_to_sequence(base_sequence, count - 1)
            if len(producer.batches) == BATCHES_REMEMBERED:
                del producer.batches[0]
            producer.batches.append(
                BatchSummary(base_sequence, last_sequence, first_offset, last_offset, timestamp)
            )
        producer.last_timestamp = timestamp
        if transactional and producer.txn_first_offset == NO_OFFSET:
            producer.txn_first_offset = first_offset
            self._ongoing[first_offset] = producer_id

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        is_abort: bool,
    ) -> CompletedTxn | None:
        """Apply a commit or abort marker. It fences even a producer that is not known."""
        producer = self._producer(producer_id)
        producer.begin_epoch(epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        first_offset, producer.txn_first_offset = producer.txn_first_offset, NO_OFFSET
        return (
            None if first_offset == NO_OFFSET else CompletedTxn(producer_id, first_offset, offset, is_abort)
        )

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset once `completed` no longer counts."""
        others = [first for first in self._ongoing if first != completed.first_offset]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """The marker is in the log: the transaction is decided, and stable once the marker is replicated."""
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def high_watermark_moved(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open, or whose end is not replicated yet."""
        if self._ongoing or self._unreplicated:
            return min([*self._ongoing, *self._unreplicated])
        return None

    @property
    def has_open_transactions(self) -> bool:
        return bool(self._ongoing)

    # -- expiry, snapshots

    def remove_expired(self, now_ms: int) -> None:
        expired = [p.producer_id for p in self.producers.values() if self._is_expired(p, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]

    def _is_expired(self, producer: Producer, now_ms: int) -> bool:
        idle_ms = now_ms - producer.last_timestamp
        return producer.txn_first_offset == NO_OFFSET and idle_ms >= self.expiration_ms

    def snapshot(self) -> list[SnapshotEntry]:
        return [_to_entry(producer) for producer in self.producers.values()]

    def load(self, entries: Iterable[SnapshotEntry], end_offset: int, now_ms: int) -> None:
        """Start from a snapshot taken at `end_offset`; producers long silent are left out."""
        self.clear()
        self.end_offset = end_offset
        for entry in entries:
            producer = _from_entry(entry)
            if not self._is_expired(producer, now_ms):
                self.producers[producer.producer_id] = producer
                if producer.txn_first_offset != NO_OFFSET:
                    self._ongoing[producer.txn_first_offset] = producer.producer_id

    def clear(self, end_offset: int = 0) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.end_offset = end_offset

    def _producer(self, producer_id: int) -> Producer:
        """A producer that writes now: where some may have to be forgotten, it is the last one."""
        producers = self.producers
        producer = producers.get(producer_id)
        if producer is None:
            producer = producers[producer_id] = Producer(producer_id)
            if self.quota is not None and not self.quota.allows(len(producers)):
                self.forget_oldest(max(1, len(producers) // _FORGOTTEN_AT_ONCE))
        elif self.quota is not None and len(producers) > self.quota.level // 2:
            del producers[producer_id]
            producers[producer_id] = producer
        return producer

    def forget_oldest(self, count: int) -> None:
        """As if they had expired. Those with an open transaction stay, and so does the one that writes now."""
        producers = self.producers
        for producer in list(islice(producers.values(), min(count, len(producers) - 1))):
            del producers[producer.producer_id]
            if producer.txn_first_offset != NO_OFFSET:
                producers[producer.producer_id] = producer


def _to_entry(producer: Producer) -> SnapshotEntry:
    last = (
        producer.batches[-1]
        if producer.batches
        else BatchSummary(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, -1)
    )
    return SnapshotEntry(
        producer.producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.first_offset,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )


def _from_entry(entry: SnapshotEntry) -> Producer:
    producer = Producer(entry.producer_id, entry.epoch)
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.last_timestamp = entry.timestamp
    producer.txn_first_offset = entry.txn_first_offset
    if entry.last_sequence >= 0:
        producer.is_partial = True
        first_sequence = (entry.last_sequence - entry.offset_delta) % _SEQUENCES
        first_offset = entry.last_offset - entry.offset_delta
        producer.batches.append(
            BatchSummary(
                first_sequence, entry.last_sequence, first_offset, entry.last_offset, entry.timestamp
            )
        )
    return producer
