"""Keeps records out of partitions that are no part of their transaction (KIP-890).

Before the first records of a transaction are appended to a partition, its coordinator is asked whether the partition
is part of it; clients of `transaction.version` 2 count on being added by that. The coordinator may be this broker: the
answer then comes before the marker of any later end. From another broker it may come late, so whoever was asked for
is remembered until a marker is written: an answer for a transaction that has ended does not count.

Requests of a producer go on in the order in which they came. One may still wait for its answer when the next comes,
and by then the partition can be known to be part of the transaction: it must wait behind the first all the same, or
its records would be out of order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ottla.coordinator.transactions.coordinator import TransactionCoordinator
from ottla.coordinator.transactions.markers import Codes, Peers
from ottla.coordinator.transactions.transaction import EPOCH_BUMP, Expected
from ottla.errors import BrokerError
from ottla.internal_topics.transaction_records import by_topic
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.replica.manager import ReplicaManager
from ottla.storage.producers.state import NO_OFFSET

_ADD_VERSION = 5
# Answers after which the client sends the same records again.
_TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Supports(IntEnum):
    """What a client understands: old errors only, TRANSACTION_ABORTABLE, or partitions that are added by themselves."""

    OLD_ERRORS = 0
    ABORTABLE = 1
    ADDING = 2


@dataclass(slots=True)
class _Check:
    """What one request waits for: `answers` about its partitions, and its turn."""

    sequences: Mapping[TopicPartition, int]
    supports: Supports
    done: Callable[[Codes], None]
    answers: Codes | None = None


class Verifier:
    """Asks the coordinator of a transaction about partitions of this broker."""

    def __init__(
        self, transactions: TransactionCoordinator, replicas: ReplicaManager, peers: Peers, node_id: int
    ) -> None:
        self._transactions = transactions
        self._replicas = replicas
        self._peers = peers
        self._node_id = node_id
        # What was asked for: the epoch, and the first sequence that came. A later one must not get in before it.
        self._asked: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        self._turns: dict[int, deque[_Check]] = {}  # by producer id
        transactions.local_markers.on_end = self._ended

    def check(
        self,
        transactional_id: str,
        producer: Expected,
        sequences: Mapping[TopicPartition, int],
        supports: Supports,
        done: Callable[[Codes], None],
    ) -> None:
        """Whether records of a producer may go to the partitions; `done`, often at once, with a code for each."""
        unknown: dict[TopicPartition, int] = {}
        for partition, sequence in sequences.items():
            if not self._is_open(partition, producer):
                unknown[partition] = sequence
                self._note(partition, producer, sequence)
        known = dict.fromkeys(sequences, int(ErrorCode.NONE))
        if not unknown and producer.producer_id not in self._turns:
            done(known)
            return
        check = _Check(unknown, supports, lambda codes: done({**known, **codes}))
        self._turns.setdefault(producer.producer_id, deque()).append(check)

        def answered(answers: Codes) -> None:
            check.answers = answers
            self._go_on(producer.producer_id)

        if unknown:
            self._ask(transactional_id, producer, frozenset(unknown), supports, answered)
        else:
            answered({})

    def _go_on(self, producer_id: int) -> None:
        """Whoever is answered and has nobody before it goes on."""
        while (turns := self._turns.get(producer_id)) and (answers := turns[0].answers) is not None:
            check = turns.popleft()
            if not turns:
                del self._turns[producer_id]
            codes: Codes = {}
            for partition, sequence in check.sequences.items():
                code = answers.get(partition, ErrorCode.NETWORK_EXCEPTION)
                codes[partition] = self._judge(partition, producer_id, sequence, code, check.supports)
            check.done(codes)

    def _note(self, partition: TopicPartition, producer: Expected, sequence: int) -> None:
        key = (partition, producer.producer_id)
        epoch, lowest = self._asked.get(key, (producer.producer_epoch, sequence))
        if epoch == producer.producer_epoch:
            sequence = min(sequence, lowest)
        self._asked[key] = (producer.producer_epoch, sequence)

    def _ended(self, partition: TopicPartition, producer_id: int) -> None:
        """The producer's transaction has ended in a partition: no answer to a question of before counts."""
        self._asked.pop((partition, producer_id), None)

    def _is_open(self, partition: TopicPartition, producer: Expected) -> bool:
        hosted = self._replicas.partition(partition)
        if hosted is None or hosted.log is None or hosted.is_lent:
            return False
        known = hosted.log.producers.producers.get(producer.producer_id)
        return (
            known is not None
            and known.epoch == producer.producer_epoch
            and known.txn_first_offset != NO_OFFSET
        )

    def _judge(
        self, partition: TopicPartition, producer_id: int, sequence: int, code: int, supports: Supports
    ) -> int:
        key = (partition, producer_id)
        asked = self._asked.get(key)
        if code in _TRY_AGAIN:
            return code
        if code != ErrorCode.NONE:
            self._asked.pop(key, None)
            if code == ErrorCode.PRODUCER_FENCED:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if code == ErrorCode.TRANSACTION_ABORTABLE and supports is Supports.OLD_ERRORS:
                return ErrorCode.INVALID_TXN_STATE
            return code
        if asked is None:
            return ErrorCode.INVALID_TXN_STATE
        if sequence > asked[1] and not self._is_known(partition, producer_id):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return ErrorCode.NONE

    def _is_known(self, partition: TopicPartition, producer_id: int) -> bool:
        """Whether earlier records of the producer are in the log, or on their way."""
        hosted = self._replicas.partition(partition)
        if hosted is None or hosted.log is None:
            return False
        return hosted.is_lent or producer_id in hosted.log.producers.producers

    def _ask(
        self,
        transactional_id: str,
        producer: Expected,
        partitions: frozenset[TopicPartition],
        supports: Supports,
        answered: Callable[[Codes], None],
    ) -> None:
        adds = supports is Supports.ADDING
        node_id = self._transactions.leader_of(transactional_id)
        if node_id not in (None, -1, self._node_id):
            assert node_id is not None
            request = _request(transactional_id, producer, partitions, adds)
            self._peers.send(node_id, _ADD_VERSION, request, lambda response: answered(_codes(response)))
            return

        def reply(codes: Any, error: BrokerError | None) -> None:
            if error is not None:
                answered(dict.fromkeys(partitions, error.code))
            else:
                answered(codes or dict.fromkeys(partitions, ErrorCode.NONE))

        transactions = self._transactions
        if adds:
            transactions.add_partitions(transactional_id, producer, partitions, EPOCH_BUMP, reply)
        else:
            transactions.run(
                transactional_id,
                lambda state, now_ms: state.verify(transactional_id, producer, partitions, now_ms),
                reply,
            )


def _request(
    transactional_id: str, producer: Expected, partitions: frozenset[TopicPartition], adds: bool
) -> AddPartitionsToTxnRequest:
    wanted = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=not adds,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
    )
    return AddPartitionsToTxnRequest(transactions=[wanted])


def _codes(response: AddPartitionsToTxnResponse | None) -> Codes:
    if response is None:
        return {}
    return {
        TopicPartition(topic.name, entry.partition_index): response.error_code or entry.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for entry in topic.results_by_partition
    }
