"""Committed offsets: OffsetFetch (v1 to v10), OffsetDelete (v0). OffsetCommit is in commits.py.

OffsetFetch v2 can ask for all that a group has, v7 not to be told what a transaction may still change, v8 asks for
many groups at once, v10 names topics by their id.

A group id may be empty here: consumers without a group keep offsets under it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.gather import gather
from ottla.api.groups.classic import code_of, refusal
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.groups.offset_commands import Codes
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import CommandResult
from ottla.errors import BrokerError
from ottla.internal_topics.commit_kernel import CommittedOffset
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_TOPIC_IDS_SINCE = 10
_MANY_GROUPS_SINCE = 8
_GROUP_ERROR_SINCE = 2  # OffsetFetch: an error of the whole group; before, each partition has it

NO_OFFSET = -1


# -- OffsetFetch


@api(ApiKey.OFFSET_FETCH)
def offset_fetch(services: Services, call: Call, request: OffsetFetchRequest) -> object:
    if call.version >= _MANY_GROUPS_SINCE:
        wanted = list(request.groups)
    else:
        topics = request.topics
        wanted = [
            OffsetFetchRequestGroup(
                group_id=request.group_id,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
                    for topic in topics
                ],
            )
        ]
    if not wanted:
        return OffsetFetchResponse()
    gather(
        wanted,
        partial(_fetch_group, services, call, request.require_stable),
        lambda groups: call.reply(_fetch_response(call.version, groups)),
    )
    return PENDING


def _fetch_group(
    services: Services,
    call: Call,
    stable: bool,
    wanted: OffsetFetchRequestGroup,
    take: Callable[[OffsetFetchResponseGroup], None],
) -> None:
    if not services.allows(call, Operation.DESCRIBE, Resource.GROUP, wanted.group_id):
        take(_failed_group(call.version, wanted, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    by_id = call.version >= _TOPIC_IDS_SINCE
    if by_id and wanted.topics is not None:
        names = services.metadata.image.topic_names
        for topic in wanted.topics:
            topic.name = names.get(topic.topic_id, "") if topic.topic_id is not None else ""

    def allowed(topic: str) -> bool:
        return services.allows(call, Operation.DESCRIBE, Resource.TOPIC, topic)

    def command(state: GroupState, now_ms: int) -> CommandResult[object]:
        state.check_fetch(wanted.group_id, wanted.member_id, wanted.member_epoch)
        topics = wanted.topics
        if topics is None:
            topics = _all_topics(services, state, wanted.group_id, allowed)
        fetched = [_fetch_topic(state, wanted.group_id, topic, by_id, allowed, stable) for topic in topics]
        return CommandResult(OffsetFetchResponseGroup(group_id=wanted.group_id, topics=fetched))

    def reply(answer: OffsetFetchResponseGroup | None, error: BrokerError | None) -> None:
        if answer is None:
            answer = _failed_group(call.version, wanted, code_of(error))
        take(answer)

    services.groups.run(wanted.group_id, command, reply)


def _all_topics(
    services: Services, state: GroupState, group_id: str, allowed: Callable[[str], bool]
) -> list[OffsetFetchRequestTopics]:
    """Everything that the group has committed, as far as the client may see it."""
    known = services.metadata.image.topics
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for topic, partition in sorted(state.offsets.of(group_id)):
        if not allowed(topic):
            continue
        if topic not in topics:
            info = known.get(topic)
            topics[topic] = OffsetFetchRequestTopics(
                name=topic, topic_id=None if info is None else info.topic_id, partition_indexes=[]
            )
        topics[topic].partition_indexes.append(partition)
    return list(topics.values())


def _fetch_topic(
    state: GroupState,
    group_id: str,
    topic: OffsetFetchRequestTopics,
    by_id: bool,
    allowed: Callable[[str], bool],
    stable: bool,
) -> OffsetFetchResponseTopics:
    code = ErrorCode.NONE
    if by_id and not topic.name:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    elif not allowed(topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            _partition(
                partition,
                code
                or state.fetch(
                    group_id, TopicPartition(topic.name, partition), topic.topic_id, stable=stable
                ),
            )
            for partition in topic.partition_indexes
        ],
    )


def _partition(partition: int, found: CommittedOffset | ErrorCode | None) -> OffsetFetchResponsePartitions:
    if isinstance(found, CommittedOffset):
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
        )
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=ErrorCode.NONE if found is None else found,
    )


def _failed_group(version: int, wanted: OffsetFetchRequestGroup, code: int) -> OffsetFetchResponseGroup:
    if version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=code)
    return OffsetFetchResponseGroup(
        group_id=wanted.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=code
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in wanted.topics or []
        ],
    )


def _fetch_response(version: int, groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if version >= _MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (only,) = groups
    return OffsetFetchResponse(
        error_code=only.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=entry.partition_index,
                        committed_offset=entry.committed_offset,
                        committed_leader_epoch=entry.committed_leader_epoch,
                        metadata=entry.metadata,
                        error_code=entry.error_code,
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in only.topics
        ],
    )


# -- OffsetDelete


@api(ApiKey.OFFSET_DELETE)
def offset_delete(services: Services, call: Call, request: OffsetDeleteRequest) -> object:
    code = refusal(services, call, request.group_id, Operation.DELETE)
    if code:
        return OffsetDeleteResponse(error_code=code)
    image, allows = services.metadata.image, services.authorizer.allows
    codes: Codes = {}
    places = []
    for topic in request.topics:
        info = image.topics.get(topic.name)
        may_read = allows(call.peer, Operation.READ, Resource.TOPIC, topic.name)
        for entry in topic.partitions:
            place = TopicPartition(topic.name, entry.partition_index)
            if not may_read:
                codes[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif info is None or not 0 <= entry.partition_index < len(info.partitions):
                codes[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                places.append(place)

    def reply(deleted: Codes | None, error: BrokerError | None) -> None:
        if deleted is None:
            call.reply(OffsetDeleteResponse(error_code=code_of(error)))
        else:
            call.reply(_deleted(request, {**codes, **deleted}))

    services.groups.run(
        request.group_id, lambda state, now_ms: state.delete_offsets(request.group_id, places, now_ms), reply
    )
    return PENDING


def _deleted(request: OffsetDeleteRequest, codes: Codes) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=entry.partition_index,
                        error_code=codes[topic.name, entry.partition_index],
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.partitions
        ]
    )
