"""All that the transaction coordinator keeps in one partition of `__transaction_state`.

A transaction ends in two steps. `Prepare...` is written first: from then on its end is decided, whatever happens.
Then the markers go to its partitions, and when all are there, `Complete...` is written. Whoever loads a state that
is prepared sends the markers again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
from typing import Protocol

from ottla.config import BrokerConfig
from ottla.coordinator.result import CommandResult, Reply, Shard
from ottla.coordinator.transactions import transaction
from ottla.coordinator.transactions.transaction import AT_REST, PREPARED, Expected, NeedsProducerIdError
from ottla.errors import BrokerError, CodedError
from ottla.internal_topics.transaction_records import Status, Transaction, TransactionRecord
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode

_logger = logging.getLogger(__name__)

NEEDS_ID = object()  # a response: the command wants a new producer id
Codes = dict[TopicPartition, int]
TransactionResult = CommandResult[TransactionRecord]
_PIECE = 200  # ids that are looked after in one turn of the loop
_UNUSED_MS = 15 * 60_000  # after so long an id that was not used may be forgotten, if there is no room
MAX_NAME = 1_000  # characters
PARTITIONS_OF_ONE = 10  # of a transaction count as another id
_LOOK_MS = 1_000  # between two searches for unused ids
_QUIET_MS = 10 * 60_000  # between lines in the log


class MarkerSender(Protocol):
    """Who writes the markers of transactions."""

    def send(self, partition: int, epoch: int, transactional_id: str, txn: Transaction) -> None:
        """Write the markers of a prepared transaction, and then have it completed."""

    def forget(self, partition: int) -> None:
        """What is under way for this partition of the internal topic is no business of this broker any more."""


class TransactionState:
    """The transactional ids that belong to one partition. Commands are methods; each gives a CommandResult."""

    def __init__(
        self, shard: Shard, config: BrokerConfig, markers: MarkerSender, count: Callable[[], int]
    ) -> None:
        self._shard = shard
        self._config = config
        self._markers = markers
        self._count = count  # the weight of all shards of this broker
        self._looked_ms = 0  # when unused ids were looked for to make room
        self._told_ms = 0  # when the log last said that there is no room
        self.transactions: dict[str, Transaction] = {}
        self.weight = 0  # of all of them, in ids with a few partitions

    # -- what the runtime asks for

    def replay(self, records: Sequence[TransactionRecord], first_offset: int, producer_id: int) -> None:
        for transactional_id, value in records:
            self.weight += _weight(value) - _weight(self.transactions.get(transactional_id))
            if value is None:
                self.transactions.pop(transactional_id, None)
            else:
                self.transactions[transactional_id] = value

    def replay_end_of_txn(self, producer_id: int, committed: bool, offset: int) -> None:
        """There are no transactions in this topic."""

    def loaded(self, now_ms: int) -> None:
        for transactional_id, txn in self.transactions.items():
            if txn.status in PREPARED:
                self._markers.send(self._shard.partition, self._shard.epoch, transactional_id, txn)
        config = self._config
        self._plan(config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self.abort_timed_out)
        self._plan(config.transaction_remove_expired_transaction_cleanup_interval_ms, self.expire)

    def unloaded(self, error: BrokerError) -> None:
        self._markers.forget(self._shard.partition)

    # -- a producer's commands

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Expected | None,
        fresh_id: int | None,
        now_ms: int,
    ) -> TransactionResult:
        """A new epoch. The response is a Transaction, or NEEDS_ID."""
        known = self.transactions.get(transactional_id)
        if known is not None and known.status is Status.ONGOING:
            if expected is not None and not transaction.may_be(known, expected):
                raise CodedError(ErrorCode.PRODUCER_FENCED)
            # Its transaction, or that of the one before it, is aborted first; the client asks again.
            refusal = CodedError(ErrorCode.CONCURRENT_TRANSACTIONS)
            return self._prepare(transactional_id, transaction.fenced(known, now_ms), refusal)
        records = [] if known is not None else self._make_room(transactional_id, now_ms)
        try:
            begun = transaction.initialised(known, timeout_ms, expected, fresh_id, now_ms)
        except NeedsProducerIdError:
            return CommandResult(NEEDS_ID, records)
        return CommandResult(begun, [*records, TransactionRecord(transactional_id, begun)])

    def _make_room(self, transactional_id: str, now_ms: int) -> list[TransactionRecord]:
        """What is forgotten for one more id: some that were begun and never used. CodedError if there is none."""
        if len(transactional_id) > MAX_NAME:
            raise CodedError(ErrorCode.INVALID_REQUEST)
        limit = self._config.max_transactional_ids
        if self._count() < limit:
            return []
        records: list[TransactionRecord] = []
        if now_ms - self._looked_ms >= _LOOK_MS:
            self._looked_ms = now_ms
            unused = self._silent_since(now_ms - _UNUSED_MS, (Status.EMPTY,))
            records = [
                TransactionRecord(transactional_id, None) for transactional_id in islice(unused, _PIECE)
            ]
            if not records and now_ms - self._told_ms >= _QUIET_MS:
                self._told_ms = now_ms
                _logger.warning(
                    "no new transactional ids are taken: there are %d, as many as ottla.max.transactional.ids allows",
                    limit,
                )
        if not records:
            raise CodedError(ErrorCode.POLICY_VIOLATION)
        return records

    def _silent_since(self, limit_ms: int, statuses: tuple[Status, ...]) -> Iterator[str]:
        for transactional_id, txn in self.transactions.items():
            if txn.status in statuses and txn.updated_ms <= limit_ms:
                yield transactional_id

    def add_partitions(
        self,
        transactional_id: str,
        producer: Expected,
        added: Set[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> TransactionResult:
        """Partitions become part of the transaction; one begins if there is none."""
        transaction.check_rest(self.transactions.get(transactional_id))
        known = transaction.check_producer(self.transactions.get(transactional_id), *producer)
        grown = transaction.with_partitions(known, added, client_version, now_ms)
        if _weight(grown) > _weight(known) and self._count() >= self._config.max_transactional_ids:
            raise CodedError(ErrorCode.POLICY_VIOLATION)
        return CommandResult(None, [] if grown is None else [TransactionRecord(transactional_id, grown)])

    def verify(
        self, transactional_id: str, producer: Expected, partitions: Set[TopicPartition], now_ms: int
    ) -> TransactionResult:
        """Whether the partitions are part of the transaction. The response is `Codes`."""
        known = transaction.check_producer(self.transactions.get(transactional_id), *producer)
        codes: Codes = {
            partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }
        return CommandResult(codes)

    def end(
        self,
        transactional_id: str,
        producer: Expected,
        commit: bool,
        client_version: int,
        fresh_id: int | None,
        now_ms: int,
    ) -> TransactionResult:
        """Commit or abort. The response is the producer from now on (an Expected), or NEEDS_ID."""
        known = self.transactions.get(transactional_id)
        try:
            prepared = transaction.ended(known, producer, commit, client_version, fresh_id, now_ms)
        except NeedsProducerIdError:
            return CommandResult(NEEDS_ID)
        if prepared is None:
            assert known is not None
            return CommandResult(Expected(known.producer_id, known.producer_epoch))
        after = transaction.completed(prepared, now_ms)
        return self._prepare(transactional_id, prepared, Expected(after.producer_id, after.producer_epoch))

    def _prepare(self, transactional_id: str, prepared: Transaction, response: object) -> TransactionResult:
        """Write down that the transaction ends; once that is safe, the markers go out."""

        def safe(_: object, error: BrokerError | None) -> None:
            if error is None:
                self._markers.send(self._shard.partition, self._shard.epoch, transactional_id, prepared)

        record = TransactionRecord(transactional_id, prepared)
        return CommandResult(response, [record], replies=[(safe, None)])

    def complete(self, transactional_id: str, prepared: Transaction, now_ms: int) -> TransactionResult:
        """The markers are written."""
        known = self.transactions.get(transactional_id)
        if known is None or known.status not in PREPARED or known.producer_epoch != prepared.producer_epoch:
            return CommandResult()
        return CommandResult(
            None, [TransactionRecord(transactional_id, transaction.completed(known, now_ms))]
        )

    # -- regular work

    def _plan(self, interval_ms: int, work: Callable[[int], TransactionResult]) -> None:
        """Do some work again and again. If there was more than a piece, the rest follows in the next turns."""

        def due(state: TransactionState, now_ms: int) -> TransactionResult:
            result = work(now_ms)
            self._shard.call_later(0 if len(result.records) == _PIECE else interval_ms, due)
            return result

        self._shard.call_later(interval_ms, due)

    def abort_timed_out(self, now_ms: int) -> TransactionResult:
        """Abort what has been open for longer than its producer allowed; some of it, if that is much."""
        timed_out = [
            (transactional_id, txn)
            for transactional_id, txn in self.transactions.items()
            if txn.status is Status.ONGOING and txn.started_ms + txn.timeout_ms < now_ms
        ][:_PIECE]
        records: list[TransactionRecord] = []
        replies: list[tuple[Reply, object]] = []
        for transactional_id, txn in timed_out:
            _logger.info("the transaction of %r has timed out", transactional_id)
            one = self._prepare(transactional_id, transaction.fenced(txn, now_ms), None)
            records += one.records
            replies += one.replies
        return CommandResult(None, records, replies=replies, whole=False)

    def expire(self, now_ms: int) -> TransactionResult:
        """Forget ids that have not been used for long; some of them, if they are many."""
        limit_ms = now_ms - self._config.transactional_id_expiration_ms
        silent = self._silent_since(limit_ms, AT_REST)
        records = [TransactionRecord(transactional_id, None) for transactional_id in islice(silent, _PIECE)]
        return CommandResult(None, records, whole=False)


def _weight(txn: Transaction | None) -> int:
    return 0 if txn is None else 1 + len(txn.partitions) // PARTITIONS_OF_ONE
