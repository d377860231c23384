"""Produce v0-v2 and Fetch v0-v3, which kio does not have: the bytes are those of aiokafka's definitions."""

from __future__ import annotations

import pytest
from aiokafka.protocol import fetch as their_fetch
from aiokafka.protocol import produce as their_produce

from ottla.protocol.codec import Output, decoder, encoder
from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


def both_ways(message: Message, version: int, expected: bytes) -> None:
    output = Output()
    encoder(type(message), version)(message, output)
    assert b"".join(output.parts()) == expected
    assert decoder(type(message), version)(expected, 0) == message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_produce_requests(version: int) -> None:
    partition = PartitionProduceData(index=7, records=memoryview(b"some records"))
    message = ProduceRequest(
        acks=-1, timeout_ms=1500, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )
    theirs = getattr(their_produce, f"ProduceRequest_v{version}")
    both_ways(message, version, theirs(-1, 1500, [("t", [(7, b"some records")])]).encode())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_produce_responses(version: int) -> None:
    partition = PartitionProduceResponse(index=7, error_code=3, base_offset=99)
    values: list[object] = [7, 3, 99]
    if version >= 2:
        partition.log_append_time_ms = 123
        values.append(123)
    message = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])
    arguments: list[object] = [[("t", [tuple(values)])]]
    if version >= 1:
        message.throttle_time_ms = 20
        arguments.append(20)
    theirs = getattr(their_produce, f"ProduceResponse_v{version}")
    both_ways(message, version, theirs(*arguments).encode())


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_fetch_requests(version: int) -> None:
    partition = FetchPartition(partition=7, fetch_offset=1 << 40, partition_max_bytes=5000)
    message = FetchRequest(
        replica_id=-1, max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])]
    )
    arguments: list[object] = [-1, 500, 1]
    if version >= 3:
        message.max_bytes = 9999
        arguments.append(9999)
    theirs = getattr(their_fetch, f"FetchRequest_v{version}")
    both_ways(message, version, theirs(*arguments, [("t", [(7, 1 << 40, 5000)])]).encode())


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_fetch_responses(version: int) -> None:
    partition = PartitionData(
        partition_index=7, error_code=1, high_watermark=55, records=memoryview(b"some records")
    )
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    arguments: list[object] = []
    if version >= 1:
        message.throttle_time_ms = 20
        arguments.append(20)
    theirs = getattr(their_fetch, f"FetchResponse_v{version}")
    both_ways(message, version, theirs(*arguments, [("t", [(7, 1, 55, b"some records")])]).encode())


def test_what_an_old_version_lacks_has_kafkas_default() -> None:
    data = their_fetch.FetchRequest_v2(-1, 500, 1, [("t", [(7, 0, 5000)])]).encode()
    message = decoder(FetchRequest, 2)(data, 0)
    assert message.max_bytes == 0x7FFFFFFF
    assert (message.isolation_level, message.session_id, message.session_epoch) == (0, 0, -1)
    assert (message.rack_id, message.forgotten_topics_data, message.cluster_id) == ("", [], None)
    assert message.topics[0].partitions[0].current_leader_epoch == -1
