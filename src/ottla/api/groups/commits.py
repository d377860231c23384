"""OffsetCommit, v2 to v10: how far a group has come.

v2 to v4 may set an expiry, v6 brings leader epochs, v7 static members, v10 names topics by their id. A group id may be
empty: consumers without a group keep offsets under it.

Consumers commit all the time and nearly always all is well, in the same partitions as before: the answer to that is
kept ready.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Final

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.groups.offset_commands import Codes, Commits
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import GroupResult
from ottla.errors import BrokerError, RecordTooLargeError
from ottla.internal_topics.commit_kernel import are_there, partitions_of
from ottla.protocol import frame
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.commit_topic import CommitTopic, entries_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS_SINCE: Final = 10
_NONE: Final = ErrorCode.NONE
_READ: Final = Operation.READ
_GROUP: Final = Resource.GROUP
_TOPIC: Final = Resource.TOPIC
_UNKNOWN_PARTITION: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_MAX_KEPT: Final = 100  # partitions of an answer that is kept ready


class _Commit:
    """One request under way."""

    __slots__ = ("_call", "_commits", "_refused", "_request", "_services")

    def __init__(self, services: Services, call: Call, request: OffsetCommitRequest) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._refused: dict[tuple[int, int], int] = {}  # by place of the topic, and partition: why
        self._commits: Commits = []

    def run(self) -> object:
        services, call, request = self._services, self._call, self._request
        if not services.authorizer.allows(call.peer, _READ, _GROUP, request.group_id):
            return self._response({}, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for place, topic in enumerate(request.topics):
            self._look_at(place, topic)
        if not self._commits:
            return self._response({}, _NONE)
        services.groups.run(request.group_id, self._command, self._reply)
        return PENDING

    def _look_at(self, place: int, topic: OffsetCommitRequestTopic) -> None:
        """Take what of a topic can be committed."""
        services, call = self._services, self._call
        image = services.metadata.image
        by_id = call.version >= _TOPIC_IDS_SINCE
        if by_id:
            topic.name = image.topic_names.get(topic.topic_id, "") if topic.topic_id is not None else ""
        code = _NONE
        count = 0
        info = image.topics.get(topic.name)
        if by_id and not topic.name:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not services.authorizer.allows(call.peer, _READ, _TOPIC, topic.name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif info is None:
            code = _UNKNOWN_PARTITION
        else:
            count = len(info.partitions)
        entries = topic.entries if isinstance(topic, CommitTopic) else entries_of(topic.partitions)
        if not are_there(entries, count):
            for entry in entries:
                if not 0 <= entry[0] < count:
                    self._refused[place, entry[0]] = code or _UNKNOWN_PARTITION
            entries = [entry for entry in entries if 0 <= entry[0] < count]
        if entries:
            self._commits.append((topic.name, topic.topic_id, entries))

    def _command(self, state: GroupState, now_ms: int) -> GroupResult:
        return state.commit(self._request, self._call.version, self._commits, now_ms)

    def _reply(self, codes: Codes | None, error: BrokerError | None) -> None:
        call, topics = self._call, self._request.topics
        if codes is None:
            call.reply(self._response({}, _failure(error)))
        elif codes or self._refused or len(topics) != 1 or len(self._commits[0][2]) > _MAX_KEPT:
            call.reply(self._response(codes, _NONE))
        else:
            topic = topics[0]
            partitions = partitions_of(self._commits[0][2])
            head, tail = _all_is_well(call.version, topic.name, topic.topic_id, partitions)
            call.reply(head + call.correlation_id.to_bytes(4, "big", signed=True) + tail)

    def _response(self, codes: Codes, others: int) -> OffsetCommitResponse:
        """What became of each partition; `others`: of those with no code of their own."""
        topics = []
        for place, topic in enumerate(self._request.topics):
            partitions = []
            for entry in topic.partitions:
                index = entry.partition_index
                code = self._refused.get((place, index))
                if code is None:
                    code = codes.get((topic.name, index), others)
                partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
            if partitions:
                topics.append(
                    OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
                )
        return OffsetCommitResponse(topics=topics)


def _failure(error: BrokerError | None) -> int:
    if error is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if isinstance(error, RecordTooLargeError) else error.code


@lru_cache(maxsize=1000)
def _all_is_well(
    version: int, name: str, topic_id: uuid.UUID | None, partitions: tuple[int, ...]
) -> tuple[bytes, bytes]:
    """The answer where all went well: what comes before its correlation id, and what comes after."""
    slots = [OffsetCommitResponsePartition(partition_index=partition) for partition in partitions]
    topic = OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=slots)
    whole = b"".join(
        frame.response_parts(ApiKey.OFFSET_COMMIT, version, 0, OffsetCommitResponse(topics=[topic]))
    )
    return whole[: frame.CORRELATION_ID_AT], whole[frame.CORRELATION_ID_AT + 4 :]


@api(ApiKey.OFFSET_COMMIT)
def offset_commit(services: Services, call: Call, request: OffsetCommitRequest) -> object:
    return _Commit(services, call, request).run()
