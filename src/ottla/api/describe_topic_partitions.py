"""DescribeTopicPartitions, v0: topics and their partitions in the order of their names, page by page.

An empty list asks for all topics. An answer holds at most `response_partition_limit` partitions, and never more than
max.request.partition.size.limit; the cursor says where the next page begins. What the client may do with each topic
is always told. ottla has no eligible leader replicas.
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.api.access import Operation, Resource, authorized_operations
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.api.slow_answers import SLICE, answer_in_slices
from ottla.cluster.image import INTERNAL_TOPICS, ClusterImage, PartitionInfo, TopicInfo
from ottla.names import is_topic_name
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.slices import Steps

_NO_LEADER = -1


@api(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def describe_topic_partitions(
    services: Services, call: Call, request: DescribeTopicPartitionsRequest
) -> object:
    return answer_in_slices(services, call, _response(services, call, request))


def _response(services: Services, call: Call, request: DescribeTopicPartitionsRequest) -> Steps:
    names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return _malformed(request)
    image = services.metadata.image
    start = "" if cursor is None else cursor.topic_name
    wanted = sorted(name for name in names or image.topics if name >= start)
    allows = services.authorizer.allows
    visible = [n for n in wanted if allows(call.peer, Operation.DESCRIBE, Resource.TOPIC, n)]
    limit = max(1, min(request.response_partition_limit, services.config.max_request_partition_size_limit))
    response = yield from _page(image, visible, cursor, limit)
    for number, topic in enumerate(response.topics):
        topic.topic_authorized_operations = authorized_operations(
            services.authorizer, call.peer, Resource.TOPIC, topic.name or ""
        )
        if number % SLICE == SLICE - 1:
            yield
    if names and len(visible) < len(wanted):
        seen = set(visible)
        response.topics += [
            _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in wanted if name not in seen
        ]
    return response


def _malformed(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """A cursor that points nowhere. Kafka fails the request as a whole."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            for topic in request.topics
        ]
    )


def _page(
    image: ClusterImage, names: list[str], cursor: Cursor | None, limit: int
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    page = DescribeTopicPartitionsResponse()
    room = limit
    for number, name in enumerate(names):
        if number % SLICE == SLICE - 1:
            yield
        if room == 0:
            page.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            valid = is_topic_name(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
            page.topics.append(_failed(name, code))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        end = min(first + room, len(topic.partitions))
        page.topics.append(_topic(image, topic, first, end))
        room -= max(0, end - first)
        if end < len(topic.partitions):
            page.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return page


def _failed(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, is_internal=name in INTERNAL_TOPICS
    )


def _topic(
    image: ClusterImage, topic: TopicInfo, first: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(image, index, topic.partitions[index]) for index in range(first, end)],
    )


def _partition(
    image: ClusterImage, index: int, partition: PartitionInfo
) -> DescribeTopicPartitionsResponsePartition:
    is_led = partition.leader in image.brokers
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader if is_led else _NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[node for node in partition.replicas if node not in image.brokers],
    )
