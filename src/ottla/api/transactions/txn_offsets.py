"""TxnOffsetCommit, v0 to v5: offsets of a group that count when a transaction is committed.

v2 brings leader epochs, v3 the member in whose name they come, v5 adds the group to the transaction by itself; before,
the client has done that with AddOffsetsToTxn. A group id may not be empty here.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.produce.transactions import is_asked_for
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.groups.coordinator import OFFSETS_TOPIC
from ottla.coordinator.groups.offset_commands import Commits
from ottla.coordinator.transactions.markers import Codes
from ottla.coordinator.transactions.transaction import Expected
from ottla.coordinator.transactions.verification import Supports
from ottla.errors import BrokerError, RecordTooLargeError
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.commit_topic import entries_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_LOADING_SINCE = 2  # clients before do not know what COORDINATOR_LOAD_IN_PROGRESS means
_SUPPORTS = {4: Supports.ABORTABLE, 5: Supports.ADDING}
_NO_SEQUENCE = -1

GroupCodes = dict[tuple[str, int], int]


@api(ApiKey.TXN_OFFSET_COMMIT)
def txn_offset_commit(services: Services, call: Call, request: TxnOffsetCommitRequest) -> object:
    allows, peer = services.authorizer.allows, call.peer
    if not allows(peer, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return _response(request, lambda *_: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not allows(peer, Operation.READ, Resource.GROUP, request.group_id):
        return _response(request, lambda *_: ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused = _refused(services, call, request)
    if all(
        (topic.name, entry.partition_index) in refused
        for topic in request.topics
        for entry in topic.partitions
    ):
        return _response(request, lambda *place: refused[place])

    def reply(codes: GroupCodes | None, error: BrokerError | None) -> None:
        known = refused if codes is None else {**codes, **refused}
        others = _code(call, error) if codes is None else ErrorCode.NONE
        call.reply(_response(request, lambda *place: known.get(place, others)))

    if not request.group_id:
        return _response(request, lambda *place: refused.get(place, ErrorCode.INVALID_GROUP_ID))
    _verify(services, call, request, lambda: _commit(services, request, refused, reply), reply)
    return PENDING


def _verify(
    services: Services,
    call: Call,
    request: TxnOffsetCommitRequest,
    then: Callable[[], None],
    reply: Callable[[GroupCodes | None, BrokerError | None], None],
) -> None:
    """Go on if the group's offsets are part of the transaction."""
    partition = TopicPartition(OFFSETS_TOPIC, services.groups.partition_of(request.group_id))

    def checked(codes: Codes) -> None:
        code = codes[partition]
        if code:
            error = BrokerError(f"the transaction could not be verified: error {code}")
            error.code = code
            reply(None, error)
        else:
            then()

    supports = _SUPPORTS.get(call.version, Supports.OLD_ERRORS)
    if services.groups.leader_of(request.group_id) != services.node_id:
        then()  # the commit fails with NOT_COORDINATOR
    elif is_asked_for(services, supports):
        producer = Expected(request.producer_id, request.producer_epoch)
        services.verifier.check(
            request.transactional_id, producer, {partition: _NO_SEQUENCE}, supports, checked
        )
    else:
        then()


def _commit(
    services: Services,
    request: TxnOffsetCommitRequest,
    refused: GroupCodes,
    reply: Callable[[GroupCodes | None, BrokerError | None], None],
) -> None:
    image = services.metadata.image
    commits: Commits = []
    for topic in request.topics:
        info = image.topics.get(topic.name)
        wanted = [entry for entry in topic.partitions if (topic.name, entry.partition_index) not in refused]
        commits.append((topic.name, None if info is None else info.topic_id, entries_of(wanted)))
    services.groups.run(
        request.group_id, lambda state, now_ms: state.txn_offset_commit(request, commits, now_ms), reply
    )


def _code(call: Call, error: BrokerError | None) -> int:
    if error is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    code = error.code
    if isinstance(error, RecordTooLargeError):
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if code == ErrorCode.NETWORK_EXCEPTION:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < _LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _refused(services: Services, call: Call, request: TxnOffsetCommitRequest) -> GroupCodes:
    """Partitions that nothing can be committed for, and why."""
    image, allows = services.metadata.image, services.authorizer.allows
    refused: GroupCodes = {}
    for topic in request.topics:
        may_read = allows(call.peer, Operation.READ, Resource.TOPIC, topic.name)
        for entry in topic.partitions:
            place = (topic.name, entry.partition_index)
            if not may_read:
                refused[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(*place) is None:
                refused[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _response(request: TxnOffsetCommitRequest, code: Callable[[str, int], int]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=entry.partition_index,
                        error_code=code(topic.name, entry.partition_index),
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
