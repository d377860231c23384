"""OffsetForLeaderEpoch, v2 to v4: where the records of a leader epoch end, so that a client notices a log that was cut.

The answer has the largest epoch that is not above the one asked for, and the offset after its last record; -1 for
both where the log does not know. v3 tells whether a replica or a client asks.
"""

from __future__ import annotations

from ottla.api.access import Operation, Resource
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.errors import BrokerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.storage.layout import TopicPartition


@api(23)
def offset_for_leader_epoch(
    services: Services, call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        visible = services.authorizer.allows(call.peer, Operation.DESCRIBE, Resource.TOPIC, topic.topic)
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
    answer = EpochEndOffset(partition=wanted.partition)
    key = TopicPartition(topic, wanted.partition)
    partition = services.replicas.partition(key)
    if partition is None:
        known = services.metadata.image.partition(topic, wanted.partition) is not None
        answer.error_code = (
            ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        return answer
    try:
        partition.check_epoch(wanted.current_leader_epoch)
        log = partition.leader_log()
    except BrokerError as error:
        answer.error_code = error.code
        return answer
    if wanted.leader_epoch == partition.leader_epoch:
        answer.leader_epoch, answer.end_offset = partition.leader_epoch, log.end_offset
    else:
        answer.leader_epoch, answer.end_offset = log.epochs.end_offset_for(
            wanted.leader_epoch, log.end_offset
        )
    return answer
