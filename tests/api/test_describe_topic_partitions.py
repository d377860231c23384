"""DescribeTopicPartitions: pages of topics in the order of their names."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.access import Operation, Resource
from ottla.cluster import controller
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.api.conftest import MakeWorld
from tests.api.world import Refusing, World

ALL_TOPIC_OPERATIONS = 3576


def describe(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def page(answer: Any) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    topics = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics]
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def two(world: World) -> World:
    world.make_topic("b", 2)
    world.make_topic("a", 2)
    return world


def test_partitions_are_told_with_leaders_and_replicas(two: World) -> None:
    (topic,) = two.ask(describe("a")).topics
    assert (topic.error_code, topic.topic_id) == (0, two.image.topics["a"].topic_id)
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, ALL_TOPIC_OPERATIONS)
    first = topic.partitions[0]
    assert (first.error_code, first.leader_id, first.leader_epoch) == (0, 1, 0)
    assert (first.replica_nodes, first.isr_nodes, first.offline_replicas) == ([1], [1], [])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])


PAGES = [
    (describe(), ([("a", [0, 1]), ("b", [0, 1])], None)),
    (describe("b", "a"), ([("a", [0, 1]), ("b", [0, 1])], None)),
    (describe("b", "b"), ([("b", [0, 1])], None)),
    (describe(limit=4), ([("a", [0, 1]), ("b", [0, 1])], None)),
    (describe(limit=3), ([("a", [0, 1]), ("b", [0])], ("b", 1))),
    (describe(limit=2), ([("a", [0, 1])], ("b", 0))),
    (describe(limit=1), ([("a", [0])], ("a", 1))),
    (describe(limit=0), ([("a", [0])], ("a", 1))),
    (describe(limit=-1), ([("a", [0])], ("a", 1))),
    (describe(limit=2, cursor=("a", 1)), ([("a", [1]), ("b", [0])], ("b", 1))),
    (describe(cursor=("aa", 1)), ([("b", [0, 1])], None)),
    (describe(cursor=("b", 7)), ([("b", [])], None)),
]


def test_pages(two: World) -> None:
    for request, expected in PAGES:
        assert page(two.ask(request)) == expected


def test_the_broker_has_a_limit_of_its_own(make_world: MakeWorld) -> None:
    world = make_world(max_request_partition_size_limit="3")
    world.make_topic("t", 5)
    assert page(world.ask(describe())) == ([("t", [0, 1, 2])], ("t", 3))


def test_following_the_cursor_gives_everything_once(two: World) -> None:
    two.make_topic("c", 5)
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(20):
        topics, cursor = page(two.ask(describe(limit=2, cursor=cursor)))
        seen += [(name, index) for name, partitions in topics for index in partitions]
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), *(("c", index) for index in range(5))]


@pytest.mark.parametrize("cursor", [("zz", 0), ("a", -1)])
def test_a_cursor_that_points_nowhere_fails_the_request(two: World, cursor: tuple[str, int]) -> None:
    answer = two.ask(describe("a", "b", cursor=cursor))
    assert [(t.name, t.error_code) for t in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]


def test_missing_and_impossible_topics_have_their_codes(two: World) -> None:
    answer = two.ask(describe("nope", "a b", "b"))
    assert [(t.name, t.error_code) for t in answer.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("b", 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert {t.topic_authorized_operations for t in answer.topics} == {ALL_TOPIC_OPERATIONS}


def test_a_partition_without_a_live_leader_says_so(world: World) -> None:
    world.register(2)
    world.make_topic("t", 2)
    world.change(lambda image: controller.unregister_broker(image, 2))
    partitions = world.ask(describe("t")).topics[0].partitions
    (orphan,) = [p for p in partitions if p.leader_id == -1]
    assert orphan.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert orphan.offline_replicas == [2]


def test_a_topic_that_the_client_may_not_see_is_told_only_if_named(two: World) -> None:
    two.services.authorizer = Refusing((Operation.DESCRIBE, Resource.TOPIC, "a"))
    assert page(two.ask(describe())) == ([("b", [0, 1])], None)
    named = two.ask(describe("a", "b")).topics
    assert [(t.name, t.error_code, t.topic_id is None) for t in named] == [
        ("b", 0, False),
        ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED, True),
    ]
