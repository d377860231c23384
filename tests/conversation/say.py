"""Short ways to put the requests and the records that scripts are made of."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records import batch
from ottla.records.builder import build_batch
from ottla.records.compression.codec import Codec
from ottla.records.legacy.message_set import CREATE_TIME, LegacyRecord, build_message_set

T0 = 1_700_000_000_000  # when the records of scripts were made
WAIT_MS = 10_000
MAX_BYTES = 1 << 20
UNKNOWN_ID = UUID(int=42)
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
NEWEST_FETCH_BY_NAME = 12

Partition = tuple[str, UUID | None, int]


def records(*values: bytes | None, key: bytes | None = b"k", codec: Codec = Codec.NONE, **more: Any) -> bytes:
    """A batch of records, one millisecond apart."""
    time_ms = more.pop("time_ms", T0)
    made = [(time_ms + number, key, value, ()) for number, value in enumerate(values)]
    return bytes(build_batch(made, codec=codec, **more))


def old_records(magic: int, *values: bytes, codec: Codec = Codec.NONE) -> bytes:
    """A message set as clients sent it before Kafka 0.11."""
    made = [
        LegacyRecord(number, T0 + number if magic else -1, CREATE_TIME, b"k", value)
        for number, value in enumerate(values)
    ]
    return build_message_set(made, magic, codec)


def with_field(data: bytes, position: int, layout: str, value: int, *, crc: bool = True) -> bytes:
    """A batch with another value in its header; its CRC is made right unless told otherwise."""
    changed = bytearray(data)
    Struct(layout).pack_into(changed, position, value)
    if crc:
        batch.write_crc(changed, 0, len(changed))
    return bytes(changed)


def produce(
    topic: str,
    data: bytes | None,
    *,
    topic_id: UUID | None = None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Records for one partition."""
    return produce_all({(topic, topic_id, partition): data}, acks=acks, transactional_id=transactional_id)


def produce_all(
    data: dict[Partition, bytes | None], *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """Records for some partitions; those of a topic must follow each other."""
    topics: list[TopicProduceData] = []
    for (name, topic_id, index), batches in data.items():
        if not topics or topics[-1].name != name:
            topics.append(TopicProduceData(name=name, topic_id=topic_id))
        records = None if batches is None else memoryview(batches)
        topics[-1].partition_data.append(PartitionProduceData(index=index, records=records))
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=WAIT_MS, topic_data=topics)


def fetch(topic: str, offset: int = 0, *, topic_id: UUID | None = None, **more: Any) -> FetchRequest:
    """All of partition 0 from an offset on, at once."""
    return fetch_all(
        [(topic, topic_id, FetchPartition(fetch_offset=offset, partition_max_bytes=MAX_BYTES))], **more
    )


def fetch_all(
    partitions: Sequence[tuple[str, UUID | None, FetchPartition]],
    *,
    forget: list[Partition] | None = None,
    **more: Any,
) -> FetchRequest:
    """Some partitions; those of a topic must follow each other."""
    topics: list[FetchTopic] = []
    for name, topic_id, partition in partitions:
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (name, topic_id):
            topics.append(FetchTopic(topic=name, topic_id=topic_id))
        topics[-1].partitions.append(partition)
    forgotten = [
        ForgottenTopic(topic=name, topic_id=id_, partitions=[index]) for name, id_, index in forget or []
    ]
    settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50 << 20, **more}
    return FetchRequest(topics=topics, forgotten_topics_data=forgotten, **settings)


def list_offsets(
    topic: str, *timestamps: int, epoch: int = -1, isolation: int = 0, replica_id: int = -1
) -> ListOffsetsRequest:
    """One timestamp for each partition of a topic, from 0 on."""
    partitions = [
        ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        for index, timestamp in enumerate(timestamps)
    ]
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
        timeout_ms=WAIT_MS,
    )


def delete_records(topic: str, offsets: dict[int, int]) -> DeleteRecordsRequest:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets.items()
    ]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=WAIT_MS
    )


def describe(
    resource_type: int,
    name: str,
    keys: list[str] | None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys)
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
