"""DeleteRecords, v0 to v2: let a partition begin later; -1 stands for its high watermark.

The answer comes when every replica in sync has followed, or REQUEST_TIMED_OUT. `low_watermark` is the smallest first
offset among them. Internal topics are not for clients: INVALID_TOPIC_EXCEPTION. Of a partition that is given twice,
the last offset counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.replica.results import DeleteResult

_UNKNOWN = -1


@api(ApiKey.DELETE_RECORDS)
def delete_records(services: Services, call: Call, request: DeleteRecordsRequest) -> object:
    response = DeleteRecordsResponse()
    offsets: dict[TopicPartition, int] = {}
    slots: dict[TopicPartition, DeleteRecordsPartitionResult] = {}
    for topic in request.topics:
        refusal = _refusal(services, call, topic.name)
        answers = {}
        for wanted in topic.partitions:
            key = TopicPartition(topic.name, wanted.partition_index)
            slot = DeleteRecordsPartitionResult(
                partition_index=wanted.partition_index, low_watermark=_UNKNOWN, error_code=refusal
            )
            answers[key] = slot
            if refusal is ErrorCode.NONE:
                offsets[key] = wanted.offset
                slots[key] = slot
        if answers:
            response.topics.append(
                DeleteRecordsTopicResult(name=topic.name, partitions=list(answers.values()))
            )

    def done(results: Mapping[TopicPartition, DeleteResult]) -> None:
        for key, result in results.items():
            slots[key].error_code = result.error_code
            slots[key].low_watermark = result.low_watermark
        call.reply(response)

    services.replicas.delete_records(offsets, request.timeout_ms, done)
    return PENDING


def _refusal(services: Services, call: Call, topic: str) -> ErrorCode:
    if not services.allows(call, Operation.DELETE, Resource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.INVALID_TOPIC_EXCEPTION if topic in INTERNAL_TOPICS else ErrorCode.NONE
