"""Transactions: AddPartitionsToTxn (v0 to v5), AddOffsetsToTxn (v0 to v4), EndTxn (v0 to v5), TxnOffsetCommit (v0 to
v5), WriteTxnMarkers (v1 and v2).

AddPartitionsToTxn is for many transactions at once from v4 on: those versions are for brokers. EndTxn v5 gives the
producer a new epoch, and TxnOffsetCommit v5 adds the group to the transaction by itself. The rules are the
coordinator's (coordinator/transactions/transaction.py). PRODUCER_FENCED is not known to clients before v2 of most of
these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.gather import gather
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.coordinator.groups.coordinator import OFFSETS_TOPIC
from ottla.coordinator.result import Producer
from ottla.coordinator.transactions.markers import Codes
from ottla.coordinator.transactions.transaction import EPOCH_BUMP, Expected
from ottla.errors import BrokerError
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.records.control import Marker

_FENCED_SINCE = 2
_MANY_SINCE = 4  # AddPartitionsToTxn
_EPOCH_BUMP_SINCE = 5  # EndTxn
_NONE = ErrorCode.NONE


def code_of(error: BrokerError | None, version: int) -> int:
    """What a client of that version is told."""
    if error is None:
        return _NONE
    is_new = error.code == ErrorCode.PRODUCER_FENCED and version < _FENCED_SINCE
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_new else error.code


def _may_write(services: Services, call: Call, transactional_id: str) -> bool:
    return services.allows(call, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)


# -- AddPartitionsToTxn


@api(ApiKey.ADD_PARTITIONS_TO_TXN)
def add_partitions_to_txn(services: Services, call: Call, request: AddPartitionsToTxnRequest) -> object:
    many = call.version >= _MANY_SINCE
    if many:
        if not services.allows(call, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted = request.transactions
    else:
        one = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        wanted = [one]
    if not wanted:
        return AddPartitionsToTxnResponse()

    def done(codes: list[Codes]) -> None:
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_results(transaction.topics, of_it),
            )
            for transaction, of_it in zip(wanted, codes, strict=True)
        ]
        if many:
            call.reply(AddPartitionsToTxnResponse(results_by_transaction=results))
        else:
            call.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results))

    gather(wanted, partial(_add, services, call), done)
    return PENDING


def _results(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _add(
    services: Services, call: Call, wanted: AddPartitionsToTxnTransaction, take: Callable[[Codes], None]
) -> None:
    transactional_id = wanted.transactional_id
    partitions = frozenset(
        TopicPartition(topic.name, index) for topic in wanted.topics for index in topic.partitions
    )
    many = call.version >= _MANY_SINCE
    if not many and not _may_write(services, call, transactional_id):
        take(dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    refused = _refused(services, call, partitions)
    if refused:
        take({**dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED), **refused})
        return
    if not transactional_id:
        take(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        return
    producer = Expected(wanted.producer_id, wanted.producer_epoch)

    def reply(codes: Codes | None, error: BrokerError | None) -> None:
        if codes is None:
            codes = dict.fromkeys(partitions, code_of(error, call.version))
        take(codes)

    if wanted.verify_only:
        services.transactions.run(
            transactional_id,
            lambda state, now_ms: state.verify(transactional_id, producer, partitions, now_ms),
            reply,
        )
    else:
        client_version = EPOCH_BUMP if many else 0
        services.transactions.add_partitions(transactional_id, producer, partitions, client_version, reply)


def _refused(services: Services, call: Call, partitions: frozenset[TopicPartition]) -> Codes:
    """Partitions that cannot be part of a transaction. Internal topics are for brokers to add."""
    image, allows = services.metadata.image, services.authorizer.allows
    refused: Codes = {}
    for entry in partitions:
        is_closed = call.version < _MANY_SINCE and (
            entry.topic in INTERNAL_TOPICS
            or not allows(call.peer, Operation.WRITE, Resource.TOPIC, entry.topic)
        )
        if is_closed:
            refused[entry] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(entry.topic, entry.partition) is None:
            refused[entry] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


# -- AddOffsetsToTxn


@api(ApiKey.ADD_OFFSETS_TO_TXN)
def add_offsets_to_txn(services: Services, call: Call, request: AddOffsetsToTxnRequest) -> object:
    transactional_id, group_id = request.transactional_id, request.group_id
    code = _NONE
    if not _may_write(services, call, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not services.allows(call, Operation.READ, Resource.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not transactional_id:
        code = ErrorCode.INVALID_REQUEST
    if code:
        return AddOffsetsToTxnResponse(error_code=code)

    def reply(_: object, error: BrokerError | None) -> None:
        call.reply(AddOffsetsToTxnResponse(error_code=code_of(error, call.version)))

    def made() -> None:
        partition = TopicPartition(OFFSETS_TOPIC, services.groups.partition_of(group_id))
        services.transactions.add_partitions(
            transactional_id,
            Expected(request.producer_id, request.producer_epoch),
            frozenset((partition,)),
            0,
            reply,
        )

    services.groups.when_made(made)
    return PENDING


# -- EndTxn


@api(ApiKey.END_TXN)
def end_txn(services: Services, call: Call, request: EndTxnRequest) -> object:
    transactional_id = request.transactional_id
    if not _may_write(services, call, transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def reply(producer: Expected | None, error: BrokerError | None) -> None:
        if producer is None:
            call.reply(EndTxnResponse(error_code=code_of(error, call.version)))
        else:
            call.reply(
                EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)
            )

    services.transactions.end(
        transactional_id,
        Expected(request.producer_id, request.producer_epoch),
        request.committed,
        EPOCH_BUMP if call.version >= _EPOCH_BUMP_SINCE else 0,
        reply,
    )
    return PENDING


# -- WriteTxnMarkers


@api(ApiKey.WRITE_TXN_MARKERS)
def write_txn_markers(services: Services, call: Call, request: WriteTxnMarkersRequest) -> object:
    """Another broker's coordinator ends transactions in partitions of this one."""
    markers = request.markers
    if not services.allows(call, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return WriteTxnMarkersResponse(
            markers=[_written(marker, dict.fromkeys(_partitions(marker), refused)) for marker in markers]
        )
    markers = [marker for marker in markers if any(topic.partition_indexes for topic in marker.topics)]
    if not markers:
        return WriteTxnMarkersResponse()

    def write(marker: WritableTxnMarker, take: Callable[[Codes], None]) -> None:
        services.transactions.local_markers.write(
            dict.fromkeys(_partitions(marker)),
            Producer(marker.producer_id, marker.producer_epoch),
            Marker(not marker.transaction_result, marker.coordinator_epoch),
            take,
        )

    def done(codes: list[Codes]) -> None:
        call.reply(WriteTxnMarkersResponse(markers=list(map(_written, markers, codes))))

    gather(markers, write, done)
    return PENDING


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _written(marker: WritableTxnMarker, codes: Codes) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
