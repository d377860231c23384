"""What a Produce request is answered: a whole response, or, where all went well, a template that is filled in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from ottla.api.call import Call
from ottla.api.services import Services
from ottla.protocol import frame
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.replica.results import AppendResult

SHORT_SINCE: Final = 5  # the version since which a partition's answer ends with the same three numbers
_CURRENT_LEADER_SINCE: Final = 10
_NAMED: Final = 3  # partitions that a log line names
_OFFSETS: Final = Struct(">qqq")  # base offset, append time, log start offset
_TEMPLATES: Final = 10_000


@lru_cache(maxsize=_TEMPLATES)
def answer_template(
    version: int, name: str, topic_id: uuid.UUID | None, index: int
) -> tuple[Callable[..., bytes], bytes, bytes, bytes]:
    """The answer to a request of one partition that went well: what puts it together, and its parts that are always
    the same."""
    mark = 0x6F_74_74_6C_61_21_21_21
    slot = PartitionProduceResponse(
        index=index, base_offset=mark, log_append_time_ms=mark, log_start_offset=mark
    )
    topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[slot])
    whole = b"".join(frame.response_parts(ApiKey.PRODUCE, version, 0, ProduceResponse(responses=[topic])))
    head, rest = whole[: frame.CORRELATION_ID_AT], whole[frame.CORRELATION_ID_AT + 4 :]
    middle, _, tail = rest.rpartition(_OFFSETS.pack(mark, mark, mark))
    return Struct(f">{len(head)}si{len(middle)}sqqq{len(tail)}s").pack, head, middle, tail


def short_answer(call: Call, request: ProduceRequest, appended: AppendResult) -> bytes:
    """The answer to a request of one partition that went well."""
    topic = request.topic_data[0]
    _, _, _, base_offset, append_time, start_offset, _ = appended
    fill, head, middle, tail = answer_template(
        call.version, topic.name, topic.topic_id, topic.partition_data[0].index
    )
    return fill(head, call.correlation_id, middle, base_offset, append_time, start_offset, tail)


def full_answer(
    services: Services, version: int, request: ProduceRequest, results: Sequence[AppendResult]
) -> ProduceResponse:
    """The answer to any request, with a result for each of its partitions, in their order."""
    response = ProduceResponse(responses=[])
    place = 0
    for topic in request.topic_data:
        count = len(topic.partition_data)
        if not count:
            continue
        of_topic = results[place : place + count]
        place += count
        slots = [_partition_response(result) for result in of_topic]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=slots)
        )
        for slot, result in zip(slots, of_topic, strict=True):
            if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= _CURRENT_LEADER_SINCE:
                _point_to_leader(services, response, slot, result)
    return response


def _partition_response(result: AppendResult) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=result.partition.partition,
        error_code=result.error_code,
        error_message=result.error_message,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time,
        log_start_offset=result.log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in result.record_errors
        ],
    )


def _point_to_leader(
    services: Services, response: ProduceResponse, slot: PartitionProduceResponse, result: AppendResult
) -> None:
    image = services.metadata.image
    info = image.partition(result.partition.topic, result.partition.partition)
    if info is None:
        return
    slot.current_leader = LeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
    broker = image.brokers.get(info.leader)
    if broker is not None and all(node.node_id != broker.node_id for node in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
        )


def failures(results: Sequence[AppendResult]) -> str:
    """What has failed and why, for people: the first few."""
    texts = [
        f"{result.partition}: {ErrorCode(result.error_code).name}"
        + (f" ({result.error_message})" if result.error_message else "")
        for result in results
        if result.error_code
    ]
    return "; ".join(texts[:_NAMED]) + ("; ..." if len(texts) > _NAMED else "")
