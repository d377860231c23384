"""Transactions as an administrator sees them: DescribeProducers (v0), DescribeTransactions (v0), ListTransactions (v0
to v2).

ListTransactions v1 picks by how long a transaction has been open, v2 by a pattern of its id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.gather import gather
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.patterns.matching import NamePattern
from ottla.coordinator.patterns.syntax import PatternError
from ottla.coordinator.result import CommandResult
from ottla.coordinator.transactions.state import TransactionState
from ottla.errors import BrokerError
from ottla.internal_topics.transaction_records import Status, by_topic
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import describe_transactions, list_transactions
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.storage.log.log import Log

# -- DescribeTransactions


@api(ApiKey.DESCRIBE_TRANSACTIONS)
def describe_txns(services: Services, call: Call, request: DescribeTransactionsRequest) -> object:
    wanted = request.transactional_ids
    if not wanted:
        return DescribeTransactionsResponse()
    gather(
        wanted,
        partial(_describe, services, call),
        lambda states: call.reply(DescribeTransactionsResponse(transaction_states=states)),
    )
    return PENDING


def _describe(
    services: Services,
    call: Call,
    transactional_id: str,
    take: Callable[[describe_transactions.TransactionState], None],
) -> None:
    def failed(code: int) -> describe_transactions.TransactionState:
        return describe_transactions.TransactionState(transactional_id=transactional_id, error_code=code)

    def reply(state: describe_transactions.TransactionState | None, error: BrokerError | None) -> None:
        if state is None:
            state = failed(ErrorCode.UNKNOWN_SERVER_ERROR if error is None else error.code)
        allows = services.authorizer.allows
        state.topics = [
            topic
            for topic in state.topics
            if allows(call.peer, Operation.DESCRIBE, Resource.TOPIC, topic.topic)
        ]
        take(state)

    def command(state: TransactionState, now_ms: int) -> CommandResult[object]:
        txn = state.transactions.get(transactional_id)
        if txn is None:
            return CommandResult(failed(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
        return CommandResult(
            describe_transactions.TransactionState(
                transactional_id=transactional_id,
                transaction_state=txn.status.title,
                transaction_timeout_ms=txn.timeout_ms,
                transaction_start_time_ms=txn.started_ms,
                producer_id=txn.producer_id,
                producer_epoch=txn.producer_epoch,
                topics=[
                    TopicData(topic=topic, partitions=partitions)
                    for topic, partitions in by_topic(txn.partitions).items()
                ],
            )
        )

    if not services.allows(call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id):
        take(failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    elif not transactional_id:
        take(failed(ErrorCode.INVALID_REQUEST))
    else:
        services.transactions.run(transactional_id, command, reply)


# -- ListTransactions


@api(ApiKey.LIST_TRANSACTIONS)
def list_txns(services: Services, call: Call, request: ListTransactionsRequest) -> object:
    titles = {status.title: status for status in Status}
    states = {titles[name] for name in request.state_filters if name in titles}
    unknown = [name for name in request.state_filters if name not in titles]
    producer_ids = set(request.producer_id_filters)
    min_age_ms = request.duration_filter
    allows, peer = services.authorizer.allows, call.peer

    def command(state: TransactionState, now_ms: int) -> CommandResult[object]:
        return CommandResult(
            [
                list_transactions.TransactionState(
                    transactional_id=transactional_id,
                    producer_id=txn.producer_id,
                    transaction_state=txn.status.title,
                )
                for transactional_id, txn in state.transactions.items()
                if (not request.state_filters or txn.status in states)
                and (not producer_ids or txn.producer_id in producer_ids)
                and (min_age_ms < 0 or now_ms - txn.started_ms > min_age_ms)
            ]
        )

    def matched(found: list[list_transactions.TransactionState] | None, error: BaseException | None) -> None:
        if found is None:
            is_no_pattern = isinstance(error, PatternError)
            code = ErrorCode.INVALID_REGULAR_EXPRESSION if is_no_pattern else ErrorCode.UNKNOWN_SERVER_ERROR
            call.reply(ListTransactionsResponse(error_code=code))
        else:
            call.reply(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found))

    def done(answers: list[tuple[Any, BrokerError | None]]) -> None:
        response = ListTransactionsResponse(unknown_state_filters=unknown)
        for found, error in answers:
            if error is not None:
                # Part of the truth would look like all of it.
                call.reply(ListTransactionsResponse(error_code=error.code))
                return
            response.transaction_states += (
                state
                for state in found
                if allows(peer, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, state.transactional_id)
            )
        pattern, listed = request.transactional_id_pattern, response.transaction_states
        if pattern:
            # Not on the loop: there may be many ids.
            services.runtime.run_blocking(lambda: _matching(pattern, listed), matched)
        else:
            call.reply(response)

    services.transactions.run_everywhere(command, done)
    return PENDING


def _matching(
    pattern: str, listed: list[list_transactions.TransactionState]
) -> list[list_transactions.TransactionState]:
    """Those whose ids match a pattern; PatternError if it is none."""
    ids = NamePattern(pattern, frozenset("".join(state.transactional_id for state in listed)))
    return [state for state in listed if ids.matches(state.transactional_id)]


# -- DescribeProducers


@api(ApiKey.DESCRIBE_PRODUCERS)
def describe_producers(services: Services, call: Call, request: DescribeProducersRequest) -> object:
    wanted = [
        TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
    ]

    def done(described: list[PartitionResponse]) -> None:
        answers = iter(described)
        topics = [
            TopicResponse(name=topic.name, partitions=[next(answers) for _ in topic.partition_indexes])
            for topic in request.topics
        ]
        call.reply(DescribeProducersResponse(topics=topics))

    if not wanted:
        return DescribeProducersResponse(topics=[TopicResponse(name=topic.name) for topic in request.topics])
    gather(wanted, partial(_describe_partition, services, call), done)
    return PENDING


def _describe_partition(
    services: Services, call: Call, key: TopicPartition, take: Callable[[PartitionResponse], None]
) -> None:
    def refuse(code: ErrorCode, message: str | None = None) -> None:
        take(PartitionResponse(partition_index=key.partition, error_code=code, error_message=message))

    def done(producers: list[ProducerState] | None, error: BaseException | None) -> None:
        if producers is None:
            refuse(
                ErrorCode(error.code) if isinstance(error, BrokerError) else ErrorCode.UNKNOWN_SERVER_ERROR
            )
        else:
            take(PartitionResponse(partition_index=key.partition, active_producers=producers))

    info = services.metadata.image.partition(key.topic, key.partition)
    hosted = services.replicas.partition(key)
    if not services.allows(call, Operation.READ, Resource.TOPIC, key.topic):
        refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif info is None:
        is_known = key.topic in services.metadata.image.topics
        refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None if is_known else f"there is no topic {key.topic}")
    elif info.leader != services.node_id or hosted is None or hosted.log is None:
        refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        services.replicas.on_log(key, _producers, done)


def _producers(log: Log) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_first_offset,
        )
        for producer in log.producers.producers.values()
    ]
