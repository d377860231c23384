"""Requests with very many entries: answered as ever, in order, and nobody else waits for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.protocol import frame
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, produce, records, wait_until

METADATA, OFFSET_COMMIT, FIND_COORDINATOR, ALTER_CONFIGS = 3, 8, 10, 33
TOPIC = "many"
PARTITIONS = 1200
UNKNOWN_TOPIC_OR_PARTITION = 3
TURN_MS = 50  # as in the attacks


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {"auto.create.topics.enable": "false", "log.cleaner.enable": "false"}
    with EmbeddedBroker(settings) as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        garbage = broker.broker.garbage
        broker.call(garbage.take_over)  # as `ottla serve` does
        yield broker
        garbage.give_back()


def names(count: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"name-{number}") for number in range(count)])


def fetch(offset: int = 0, count: int = PARTITIONS, **fields: Any) -> FetchRequest:
    parts = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number in range(count)
    ]
    fields = {"max_bytes": 1 << 20, "max_wait_ms": 0, "session_epoch": -1, **fields}
    return FetchRequest(topics=[FetchTopic(topic=TOPIC, partitions=parts)], **fields)


def used_bytes(broker: EmbeddedBroker) -> int:
    return broker.broker.listener.budget.used_bytes


def test_every_name_is_answered_and_what_follows_comes_after_it(broker: EmbeddedBroker) -> None:
    with Wire(broker) as wire:
        first = wire.send(METADATA, 9, names(20_000))
        second = wire.send(METADATA, 9, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]))
        answered, response = wire.receive(METADATA, 9)
        assert answered == first
        assert [topic.name for topic in response.topics] == [f"name-{number}" for number in range(20_000)]
        assert {topic.error_code for topic in response.topics} == {UNKNOWN_TOPIC_OR_PARTITION}
        answered, response = wire.receive(METADATA, 9)
        assert answered == second
        assert [p.partition_index for p in response.topics[0].partitions] == list(range(PARTITIONS))
    wait_until(lambda: used_bytes(broker) == 0)


def test_all_topics_are_told_of(broker: EmbeddedBroker) -> None:
    with Wire(broker) as wire:
        response = wire.ask(METADATA, 9, MetadataRequest(topics=None))
    (topic,) = [topic for topic in response.topics if topic.name == TOPIC]
    assert len(topic.partitions) == PARTITIONS
    assert all(partition.error_code == 0 for partition in topic.partitions)


def test_what_a_connection_sends_takes_effect_in_order(broker: EmbeddedBroker) -> None:
    """Two records for partition 7: one in a request of very many partitions, one in a small one right behind it."""
    data = [
        PartitionProduceData(index=number % PARTITIONS, records=memoryview(records(b"first")))
        for number in range(PARTITIONS)
    ]
    large = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
    )
    small = produce(TOPIC, records(b"second"))
    small.topic_data[0].partition_data[0].index = 7
    with Wire(broker) as wire:
        requests = [
            b"".join(frame.request_parts(PRODUCE, 9, number, "wire", request))
            for number, request in enumerate((large, small))
        ]
        wire.send_bytes(b"".join(requests))
        answered, response = wire.receive(PRODUCE, 9)
        assert answered == 0
        slots = response.responses[0].partition_responses
        assert [slot.index for slot in slots] == list(range(PARTITIONS))
        assert {slot.error_code for slot in slots} == {0}
        answered, response = wire.receive(PRODUCE, 9)
        assert answered == 1
        assert response.responses[0].partition_responses[0].base_offset == slots[7].base_offset + 1
        response = wire.ask(FETCH, 11, fetch())
        found = response.responses[0].partitions
        assert [partition.partition_index for partition in found] == list(range(PARTITIONS))
        assert all(b"first" in bytes(partition.records) for partition in found)
    wait_until(lambda: used_bytes(broker) == 0)


def test_a_session_of_very_many_partitions_tells_what_is_new(broker: EmbeddedBroker) -> None:
    with Wire(broker) as wire:
        ends = {
            p.partition_index: p.high_watermark for p in wire.ask(FETCH, 11, fetch()).responses[0].partitions
        }
        request = fetch(session_epoch=0)
        for part in request.topics[0].partitions:
            part.fetch_offset = ends[part.partition]
        begun = wire.ask(FETCH, 11, request)
        assert begun.session_id != 0
        more = FetchRequest(
            max_bytes=1 << 20, max_wait_ms=60_000, min_bytes=1, session_id=begun.session_id, session_epoch=1
        )
        wire.send(FETCH, 11, more)
        with Wire(broker) as other:
            new = produce(TOPIC, records(b"news"))
            new.topic_data[0].partition_data[0].index = PARTITIONS - 1
            other.ask(PRODUCE, 9, new)
        _, response = wire.receive(FETCH, 11)
        (partition,) = response.responses[0].partitions
        assert partition.partition_index == PARTITIONS - 1
        assert b"news" in bytes(partition.records)


def test_offsets_of_very_many_partitions_are_committed(broker: EmbeddedBroker) -> None:
    entries = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=number, committed_metadata="")
        for number in range(2 * PARTITIONS)
    ]
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=entries)],
    )
    with Wire(broker) as wire:
        wire.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        found = wire.ask(OFFSET_COMMIT, 8, request).topics[0].partitions
    codes = [partition.error_code for partition in found]
    assert codes == [0] * PARTITIONS + [UNKNOWN_TOPIC_OR_PARTITION] * PARTITIONS


def test_nobody_waits_for_them(broker: EmbeddedBroker) -> None:
    with Wire(broker) as other, Wire(broker) as wire:
        other.ping()
        broker.worst_turn_ms()
        wire.send(METADATA, 9, names(50_000))
        wire.send(FETCH, 11, fetch(count=50_000))
        other.ping()
        assert len(wire.receive(METADATA, 9)[1].topics) == 50_000
        assert len(wire.receive(FETCH, 11)[1].responses[0].partitions) == 50_000
        assert broker.worst_turn_ms() < TURN_MS


def test_many_at_once_have_their_turns(broker: EmbeddedBroker) -> None:
    wires = [Wire(broker) for _ in range(8)]
    for wire in wires:
        wire.send(METADATA, 9, names(20_000))
    for wire in wires:
        assert len(wire.receive(METADATA, 9)[1].topics) == 20_000
        wire.socket.close()
    wait_until(lambda: used_bytes(broker) == 0)


def test_who_hangs_up_leaves_nothing(broker: EmbeddedBroker) -> None:
    for request, key in ((names(20_000), METADATA), (fetch(count=20_000), FETCH)):
        for _ in range(3):
            with Wire(broker) as wire:
                wire.send(key, 9, request)
    wait_until(lambda: used_bytes(broker) == 0 and not len(broker.broker.services.slices))
    with Wire(broker) as wire:
        wire.ping()


def test_one_that_is_damaged_near_its_end_is_refused(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    data = bytearray(b"".join(frame.request_parts(METADATA, 9, 1, "wire", names(20_000)))[4:])
    with Wire(broker) as wire, caplog.at_level(logging.WARNING):
        wire.send_frame(bytes(data[:-100]))
        assert wire.is_closed()
    assert "MetadataRequest v9" in caplog.text
    wait_until(lambda: used_bytes(broker) == 0)


def test_one_that_cannot_be_cut_has_a_limit_and_is_told(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    resources = [
        AlterConfigsResource(resource_type=2, resource_name=f"name-{number}", configs=[])
        for number in range(10_001)
    ]
    with Wire(broker) as wire, caplog.at_level(logging.WARNING):
        wire.send(ALTER_CONFIGS, 2, AlterConfigsRequest(resources=resources))
        assert wire.is_closed()
    assert "has 10001 entries; a request of this kind may have 10000" in caplog.text
    with Wire(broker) as wire:
        answer = wire.ask(ALTER_CONFIGS, 2, AlterConfigsRequest(resources=resources[:10_000]))
        assert {response.error_code for response in answer.responses} == {UNKNOWN_TOPIC_OR_PARTITION}
