"""ListOffsets, v1 to v11: the first, the last, or the first offset at or after a time, partition by partition.

Times below 0 have a meaning: -1 the end, -2 the start, -3 (v7) the record with the largest timestamp, -4 (v8) the
start of what is on this broker's disks, -5 (v9) and -6 (v11) ends in tiered storage, which ottla does not have: no
offset. Others, and these in older versions, are UNSUPPORTED_VERSION. v2 brings isolation levels, v4 leader epochs,
v10 a timeout for tiered storage.

A partition that is asked for twice is INVALID_REQUEST, once.
"""

from __future__ import annotations

from collections import Counter

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.replica.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from ottla.replica.results import OffsetResult
from ottla.storage.log.reader import Isolation

_CONSUMER = -1
_KNOWN_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_ISOLATION = {0: Isolation.HIGH_WATERMARK, 1: Isolation.COMMITTED}


@api(ApiKey.LIST_OFFSETS)
def list_offsets(services: Services, call: Call, request: ListOffsetsRequest) -> object:
    return _ListOffsets(services, call, request).run()


class _ListOffsets:
    """One request under way: the response is laid out first, and filled in as lookups end."""

    def __init__(self, services: Services, call: Call, request: ListOffsetsRequest) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._isolation = Isolation.LOG_END
        if request.replica_id == _CONSUMER:
            self._isolation = _ISOLATION.get(request.isolation_level, Isolation.HIGH_WATERMARK)
        self._response = ListOffsetsResponse()
        self._under_way = 1  # this loop itself, so that lookups that end at once do not answer too early

    def run(self) -> object:
        for topic in self._request.topics:
            counts = Counter(wanted.partition_index for wanted in topic.partitions)
            slots = []
            for wanted in {wanted.partition_index: wanted for wanted in topic.partitions}.values():
                slot = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
                slots.append(slot)
                slot.error_code = self._refusal(topic.name, wanted, counts[wanted.partition_index])
                if not slot.error_code:
                    self._look_up(topic.name, wanted, slot)
            if slots:
                self._response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=slots))
        self._one_done()
        return PENDING

    def _refusal(self, topic: str, wanted: ListOffsetsPartition, count: int) -> ErrorCode:
        if not self._services.allows(self._call, Operation.DESCRIBE, Resource.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._request.isolation_level not in _ISOLATION:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka, where no level of that number is found
        if count > 1:
            return ErrorCode.INVALID_REQUEST
        if wanted.timestamp < 0 and self._call.version < _KNOWN_SINCE.get(wanted.timestamp, 1 << 15):
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _look_up(self, topic: str, wanted: ListOffsetsPartition, slot: ListOffsetsPartitionResponse) -> None:
        def done(found: OffsetResult) -> None:
            slot.error_code = found.error_code
            slot.timestamp, slot.offset, slot.leader_epoch = found.timestamp, found.offset, found.leader_epoch
            self._one_done()

        self._under_way += 1
        self._services.replicas.list_offset(
            TopicPartition(topic, wanted.partition_index),
            wanted.timestamp,
            self._isolation,
            wanted.current_leader_epoch,
            done,
        )

    def _one_done(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._call.reply(self._response)
