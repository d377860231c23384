"""OffsetForLeaderEpoch, v2 to v4: where the records of a leader epoch end, so that a client notices a log that was cut.

The answer has the largest epoch that is not above the one asked for, and the offset after its last record; -1 for
both where the log does not know. v3 tells whether a replica or a client asks.
"""

from __future__ import annotations

from ottla.api.access import Operation, Resource
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@api(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def offset_for_leader_epoch(
    services: Services, call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        visible = services.allows(call, Operation.DESCRIBE, Resource.TOPIC, topic.topic)
        response.topics.append(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_of_epoch(services, topic.topic, wanted)
                    if visible
                    else EpochEndOffset(
                        partition=wanted.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                    for wanted in topic.partitions
                ],
            )
        )
    return response


def _end_of_epoch(services: Services, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    found = services.replicas.end_offset_for_epoch(
        TopicPartition(topic, wanted.partition), wanted.current_leader_epoch, wanted.leader_epoch
    )
    return EpochEndOffset(
        partition=wanted.partition,
        error_code=found.error_code,
        leader_epoch=found.leader_epoch,
        end_offset=found.end_offset,
    )
