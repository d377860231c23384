"""The gate of Produce: what it says of a topic and of records, in Kafka's order; single requests and runs alike."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ottla.api.access import Operation, Resource
from ottla.api.produce.runs import ProduceRuns
from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.compression.codec import Codec
from tests.api.world import Client, Refusing, World
from tests.storage.world import batch

BY_NAME = 12
INTERNAL = "__consumer_offsets"
CUT = batch()[:-1]
OTHER_MAGIC = bytes(16) + b"\x03" + bytes(60)


@pytest.fixture
def gated(world: World) -> World:
    world.make_topic("t")
    world.make_topic("closed")
    world.services.authorizer = Refusing(
        (Operation.WRITE, Resource.TOPIC, "closed"), (Operation.WRITE, Resource.TOPIC, "unknown and closed")
    )
    return world


def request(topic: str | uuid.UUID, index: int = 0, records: bytes | None = None, acks: int = 1) -> Any:
    data = batch() if records is None else records
    part = PartitionProduceData(index=index, records=data)  # type: ignore[arg-type]
    named = {"name": topic} if isinstance(topic, str) else {"topic_id": topic}
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(partition_data=[part], **named)]
    )


def code(world: World, sent: Any, version: int = BY_NAME) -> int:
    return int(world.ask(sent, version).responses[0].partition_responses[0].error_code)


def is_run(world: World, sent: Any, version: int = BY_NAME) -> bool:
    received = memoryview(b"".join(frame.request_parts(0, version, 7, "client", sent)))
    taken = ProduceRuns(world.services).take(Client([]), received, 0, len(received), 1 << 20)
    return taken is not None


@pytest.mark.parametrize(
    ("topic", "index", "records", "expected"),
    [
        ("t", 0, None, ErrorCode.NONE),
        ("closed", 0, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("closed", 7, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("closed", 0, CUT, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("unknown and closed", 0, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("unknown", 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("unknown", 0, CUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, CUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, CUT, ErrorCode.INVALID_RECORD),
        ("t", 0, batch() + batch(), ErrorCode.INVALID_RECORD),
        ("t", 0, OTHER_MAGIC, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_checks_come_in_kafkas_order_and_only_what_passes_is_a_run(
    gated: World, topic: str, index: int, records: bytes | None, expected: ErrorCode
) -> None:
    sent = request(topic, index, records)
    assert code(gated, sent) == expected
    assert is_run(gated, sent) == (expected is ErrorCode.NONE)


def test_a_topic_id_that_nobody_knows_comes_before_all_else(gated: World) -> None:
    sent = request(uuid.UUID(int=7), 9, CUT)
    assert code(gated, sent, 13) == ErrorCode.UNKNOWN_TOPIC_ID
    assert not is_run(gated, request(uuid.UUID(int=7)), 13)
    known = gated.image.topics["t"].topic_id
    assert code(gated, request(known), 13) == ErrorCode.NONE
    assert is_run(gated, request(known), 13)


def test_internal_topics_are_closed_to_clients(gated: World) -> None:
    gated.make_topic(INTERNAL)
    assert code(gated, request(INTERNAL)) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code(gated, request(INTERNAL, records=CUT)) == ErrorCode.INVALID_RECORD
    assert code(gated, request(INTERNAL, acks=7)) == ErrorCode.INVALID_REQUIRED_ACKS
    assert not is_run(gated, request(INTERNAL))


def test_zstd_is_for_newer_clients(gated: World) -> None:
    sent = request("t", records=batch(codec=Codec.ZSTD))
    assert code(gated, sent, 6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert code(gated, sent, 7) == ErrorCode.NONE


def test_each_partition_has_its_own_result(gated: World) -> None:
    parts = [PartitionProduceData(index=index, records=batch()) for index in (5, 0)]  # type: ignore[arg-type]
    closed = [PartitionProduceData(index=0, records=batch())]  # type: ignore[arg-type]
    topics = [
        TopicProduceData(name="t", partition_data=parts),
        TopicProduceData(name="nothing asked", partition_data=[]),
        TopicProduceData(name="closed", partition_data=closed),
    ]
    answer = gated.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), BY_NAME)
    found = [
        (topic.name, [(part.index, part.error_code, part.base_offset) for part in topic.partition_responses])
        for topic in answer.responses
    ]
    assert found == [
        ("t", [(5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1), (0, 0, 0)]),
        ("closed", [(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)]),
    ]
