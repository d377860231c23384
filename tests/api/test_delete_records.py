"""DeleteRecords: partitions begin later, and say why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from ottla.api.access import Operation, Resource
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.testing.embedded import EmbeddedBroker
from tests.api.world import Refusing, World
from tests.logtools.making import check


def delete(world: World, *offsets: tuple[int, int], topic: str = "t", version: int = 2) -> Any:
    """(error, low watermark) by partition; offsets are (partition, offset)."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000
    )
    return {
        p.partition_index: (ErrorCode(p.error_code).name, p.low_watermark)
        for found in world.ask(request, version).topics
        for p in found.partitions
    }


def start_of(world: World, topic: str = "t", partition: int = 0) -> int:
    log = world.logs.get(TopicPartition(topic, partition))
    assert log is not None
    return log.start_offset


@pytest.fixture
def ten(world: World) -> World:
    """Ten records in partition 0; partition 1 is empty."""
    world.make_topic("t", 2)
    world.append("t", count=10)
    return world


def test_every_version_lets_a_partition_begin_later(ten: World) -> None:
    for version in range(3):
        assert delete(ten, (0, version + 2), version=version) == {0: ("NONE", version + 2)}
        assert start_of(ten) == version + 2


def test_an_offset_before_the_start_changes_nothing(ten: World) -> None:
    delete(ten, (0, 5))
    assert delete(ten, (0, 3)) == {0: ("NONE", 5)}
    assert start_of(ten) == 5


def test_minus_one_deletes_all_there_is(ten: World) -> None:
    assert delete(ten, (0, -1), (1, -1)) == {0: ("NONE", 10), 1: ("NONE", 0)}
    assert start_of(ten) == 10


def test_offsets_that_are_not_there_are_refused(ten: World) -> None:
    assert delete(ten, (0, 11), (1, 1), (9, 1)) == {
        0: ("OFFSET_OUT_OF_RANGE", -1),
        1: ("OFFSET_OUT_OF_RANGE", -1),
        9: ("UNKNOWN_TOPIC_OR_PARTITION", -1),
    }
    assert delete(ten, (0, -2)) == {0: ("OFFSET_OUT_OF_RANGE", -1)}
    assert delete(ten, (0, 1), topic="nope") == {0: ("UNKNOWN_TOPIC_OR_PARTITION", -1)}
    assert start_of(ten) == 0


def test_of_a_partition_given_twice_the_last_offset_counts(ten: World) -> None:
    assert delete(ten, (0, 4), (0, 5)) == {0: ("NONE", 5)}


def test_internal_topics_are_left_alone(world: World) -> None:
    world.make_topic("__consumer_offsets")
    assert delete(world, (0, 0), topic="__consumer_offsets") == {0: ("INVALID_TOPIC_EXCEPTION", -1)}


def test_a_topic_that_only_compacts_keeps_its_records(world: World) -> None:
    world.make_topic("t", cleanup_policy="compact")
    world.append("t", count=2)
    assert delete(world, (0, 1)) == {0: ("POLICY_VIOLATION", -1)}
    assert start_of(world) == 0


def test_nothing_asked_is_nothing_answered(ten: World) -> None:
    assert delete(ten) == {}


def test_a_client_without_delete_deletes_nothing(ten: World) -> None:
    ten.services.authorizer = Refusing((Operation.DELETE, Resource.TOPIC, "t"))
    assert delete(ten, (0, 5)) == {0: ("TOPIC_AUTHORIZATION_FAILED", -1)}
    assert start_of(ten) == 0


def test_what_was_deleted_is_gone_after_a_kill_and_nothing_is_damaged(tmp_path: Path) -> None:
    end = 350
    with EmbeddedBroker({}, tmp_path) as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        for number in range(end):
            producer.produce("t", b"%d" % number)
        assert producer.flush(60) == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (told,) = admin.delete_records([ClientPartition("t", 0, 200)]).values()
        assert told.result().low_watermark == 200
        broker.kill()
        assert [finding for finding in check(tmp_path) if finding.level == "defect"] == []
        broker.start()
        log = broker.broker.logs.get(TopicPartition("t", 0))
        assert log is not None
        assert (log.start_offset, log.end_offset) == (200, end)
