"""Sending finished batches: each once however often it is sent again, and in transactions.

A producer without a transactional id is idempotent; with one, its id is taken over from whoever had it before, whose
open transaction is given up. The requests are those that brokers know since 0.11, so that any broker will do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from ottla.client.cluster import GROUP, TRANSACTION, Cluster, PartitionKey
from ottla.client.connection import Connection
from ottla.client.failures import is_transient
from ottla.client.groups import Committed
from ottla.client.transactions import HeldTransaction, check_producer, end_transaction
from ottla.errors import BrokerError, CodedError, ConnectionLostError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.records.builder import seal_batch
from ottla.records.compression.codec import Codec

DEFAULT_TRANSACTION_TIMEOUT_MS = 900_000  # as much as a broker allows unless told otherwise
_ALL = -1  # acks
_SEQUENCES = 1 << 31
# The last versions before brokers add partitions and groups to transactions by themselves.
_PRODUCE, _ADD_PARTITIONS, _OFFSETS = 11, 3, 4


class Producer:
    """Sends one batch a partition at a time. What fails for good leaves it of no more use, but for `abort`."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str | None = None,
        *,
        codec: Codec = Codec.NONE,
        transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS,
    ) -> None:
        self._cluster = cluster
        self._codec = codec
        self.transactional_id = transactional_id
        self._producer_id = self._epoch = -1
        self._sequences: dict[PartitionKey, int] = {}
        self._members: set[PartitionKey] = set()  # partitions of the open transaction
        self._is_open = False
        self._unanswered: dict[PartitionKey, bytearray] = {}
        self._posted: list[Connection] = []
        self._begin(transaction_timeout_ms)

    def _begin(self, timeout_ms: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )

        def begin() -> None:
            answer = self._cluster.ask(self._coordinator(), request)
            is_long = answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
            hint = f"the brokers allow less than transaction.timeout.ms={timeout_ms}" if is_long else None
            self._check(answer.error_code, "no producer id", hint)
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

        self._cluster.retrying(begin)

    def _coordinator(self) -> int | None:
        name = self.transactional_id
        return None if name is None else self._cluster.coordinator(TRANSACTION, name)

    def _check(self, code: int, what: str, detail: str | None = None) -> None:
        check_producer(code, what, self.transactional_id, detail)

    # -- records

    def send(self, batches: Mapping[PartitionKey, tuple[bytearray, int]]) -> None:
        """Send batches, each with the number of its records; they are given their headers here.

        Earlier ones are answered when this returns, these by the next `send` or `flush`.
        """
        now_ms = int(time.time() * 1000)
        sealed = {}
        for key, (batch, count) in batches.items():
            sequence = self._sequences.get(key, 0)
            seal_batch(
                batch,
                count,
                now_ms,
                codec=self._codec,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
                transactional=self.transactional_id is not None,
            )
            self._sequences[key] = (sequence + count) % _SEQUENCES
            sealed[key] = batch
        self.flush()
        self._add_partitions(sealed.keys() - self._members)
        self._unanswered = sealed
        try:
            self._post()
        except BrokerError as error:
            self._again(error)

    def flush(self) -> None:
        """Wait until all that was sent is written."""
        try:
            self._take()
        except BrokerError as error:
            self._again(error)

    def _again(self, error: BrokerError) -> None:
        """Brokers know by its sequence a batch that they have already."""
        if not is_transient(error):
            raise error

        def send() -> None:
            self._post()
            self._take()

        self._cluster.retrying(send)

    def _post(self) -> None:
        self._abandon()
        by_leader: dict[int, dict[str, TopicProduceData]] = {}
        for (name, index), batch in self._unanswered.items():
            topics = by_leader.setdefault(self._cluster.leader((name, index)), {})
            topic = topics.setdefault(name, TopicProduceData(name=name))
            topic.partition_data.append(PartitionProduceData(index=index, records=memoryview(batch)))
        for leader, topics in by_leader.items():
            request = ProduceRequest(
                transactional_id=self.transactional_id,
                acks=_ALL,
                timeout_ms=30_000,
                topic_data=list(topics.values()),
            )
            connection = self._cluster.connection(leader)
            self._posted.append(connection)
            connection.post(request, _PRODUCE)

    def _abandon(self) -> None:
        """Answers of an attempt that broke off are not waited for: their connections go."""
        for connection in self._posted:
            self._cluster.drop(connection)
        self._posted = []

    def _take(self) -> None:
        failure: BrokerError | None = None
        while self._posted:
            connection = self._posted.pop()
            try:
                answer = connection.take()
            except ConnectionLostError as error:
                self._cluster.drop(connection)
                failure = error
                continue
            for topic in answer.responses:
                for entry in topic.partition_responses:
                    try:
                        self._take_one((topic.name, entry.index), entry.error_code, entry.error_message)
                    except CodedError as error:
                        failure = error if failure is None or not is_transient(error) else failure
        if failure is not None:
            raise failure

    def _take_one(self, key: PartitionKey, code: int, detail: str | None) -> None:
        if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            detail = f"a batch of {len(self._unanswered[key])} bytes; a smaller batch.size may help"
        if code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._check(code, f"{key[0]}-{key[1]}", detail)
        self._unanswered.pop(key, None)

    # -- transactions

    def _add_partitions(self, partitions: set[PartitionKey]) -> None:
        if not partitions or self.transactional_id is None:
            return
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, index in partitions:
            topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=list(topics.values()),
        )
        self._is_open = True

        def add() -> None:
            answer = self._cluster.ask(self._coordinator(), request, _ADD_PARTITIONS)
            for topic in answer.results_by_topic_v3_and_below:
                for entry in topic.results_by_partition:
                    what = f"{topic.name}-{entry.partition_index} in a transaction"
                    self._check(entry.partition_error_code, what)

        self._cluster.retrying(add)
        self._members |= partitions

    def commit_offsets(self, group: str, offsets: Mapping[PartitionKey, Committed]) -> None:
        """Offsets of a group that count when the transaction is committed."""
        self.flush()
        name = self._transactional()
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=self._producer_id, producer_epoch=self._epoch, group_id=group
        )
        self._is_open = True

        def add() -> None:
            answer = self._cluster.ask(self._coordinator(), request)
            self._check(answer.error_code, f"group {group} in a transaction")

        self._cluster.retrying(add)
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, index), entry in offsets.items():
            topics.setdefault(topic, TxnOffsetCommitRequestTopic(name=topic)).partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=entry.offset, committed_metadata=entry.metadata
                )
            )
        self._commit_offsets(
            group,
            TxnOffsetCommitRequest(
                transactional_id=name,
                group_id=group,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                topics=list(topics.values()),
            ),
        )

    def _commit_offsets(self, group: str, request: Message) -> None:
        def commit() -> None:
            answer = self._cluster.ask(self._cluster.coordinator(GROUP, group), request, _OFFSETS)
            for topic in answer.topics:
                for entry in topic.partitions:
                    self._check(entry.error_code, f"offsets of group {group} in a transaction")

        self._cluster.retrying(commit)

    def commit(self) -> None:
        """Commit the transaction: consumers see all records that were sent in it, or none."""
        self._transactional()
        self.flush()
        self._end(committed=True)

    def abort(self) -> None:
        """Abort the transaction: no consumer with read_committed sees its records."""
        self._abandon()
        self._unanswered = {}
        self._end(committed=False)

    def held(self) -> HeldTransaction:
        """The open transaction, for `end_transaction`: all that was sent is written. Nothing may be sent any more."""
        self.flush()
        return HeldTransaction(self._transactional(), self._producer_id, self._epoch)

    def _end(self, *, committed: bool) -> None:
        if self._is_open:
            held = HeldTransaction(self._transactional(), self._producer_id, self._epoch)
            end_transaction(self._cluster, held, committed=committed)
        self._is_open = False
        self._members.clear()

    def _transactional(self) -> str:
        if self.transactional_id is None:
            raise RuntimeError("a producer without a transactional id has no transactions")
        return self.transactional_id
