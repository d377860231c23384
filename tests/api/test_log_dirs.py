"""DescribeLogDirs and AlterReplicaLogDirs: where partitions lie, and moving them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.api.conftest import MakeWorld
from tests.api.world import Refusing, World


@pytest.fixture
def two(make_world: MakeWorld) -> World:
    """A broker with two log directories, and topic t of two partitions."""
    world = make_world(dirs=2)
    world.make_topic("t", 2)
    world.append("t", count=10)
    return world


def describe(topics: dict[str, list[int]] | None) -> DescribeLogDirsRequest:
    if topics is None:
        return DescribeLogDirsRequest(topics=None)
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics.items()]
    )


def placed(answer: Any) -> dict[str, list[tuple[str, int]]]:
    """What lies in each directory."""
    return {
        found.log_dir: [(t.name, p.partition_index) for t in found.topics for p in t.partitions]
        for found in answer.results
    }


def dir_of(world: World, partition: int, topic: str = "t") -> str:
    log = world.logs.get(TopicPartition(topic, partition))
    assert log is not None
    return log.dir.path


def move(world: World, *wanted: tuple[str, str, list[int]], version: int = 2) -> Any:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=numbers)])
            for path, name, numbers in wanted
        ]
    )
    return {
        (topic.topic_name, p.partition_index): ErrorCode(p.error_code).name
        for topic in world.ask(request, version).results
        for p in topic.partitions
    }


def test_every_version_tells_what_lies_where(two: World) -> None:
    for version in range(1, 5):
        answer = two.ask(describe({"t": [0, 1, 7], "nope": [0]}), version)
        assert answer.error_code == 0
        assert set(placed(answer)) == set(two.config.log_dirs)
        everything = sorted(found for inside in placed(answer).values() for found in inside)
        assert everything == [("t", 0), ("t", 1)]
        for found in answer.results:
            assert found.error_code == 0
            assert (found.total_bytes >= found.usable_bytes > 0) == (version >= 4)
        sizes = [
            (p.partition_index, p.partition_size > 0, p.offset_lag, p.is_future_key)
            for found in answer.results
            for t in found.topics
            for p in t.partitions
        ]
        assert sorted(sizes) == [(0, True, 0, False), (1, False, 0, False)]


def test_null_asks_for_all_and_an_empty_list_for_none(two: World) -> None:
    two.make_topic("u")
    found = placed(two.ask(describe(None)))
    assert sorted(one for inside in found.values() for one in inside) == [("t", 0), ("t", 1), ("u", 0)]
    nothing: tuple[dict[str, list[int]], ...] = ({}, {"t": []})
    for topics in nothing:
        assert set(map(len, placed(two.ask(describe(topics))).values())) == {0}


def test_a_partition_moves_to_the_other_directory(two: World) -> None:
    here = dir_of(two, 0)
    there = next(path for path in two.config.log_dirs if path != here)
    for version, target in ((1, there), (2, here)):
        assert move(two, (target, "t", [0]), version=version) == {("t", 0): "NONE"}
        two.runtime.run_pending()
        assert dir_of(two, 0) == target
        assert ("t", 0) in placed(two.ask(describe({"t": [0]})))[target]
    assert two.append("t").base_offset == 10


def test_a_partition_that_lies_there_already_stays(two: World) -> None:
    here = dir_of(two, 0)
    assert move(two, (here, "t", [0])) == {("t", 0): "NONE"}
    assert dir_of(two, 0) == here


def test_what_cannot_be_moved_has_its_code(two: World) -> None:
    here = dir_of(two, 0)
    assert move(two, ("/nope", "t", [0]), (here, "t", [9]), (here, "nope", [0])) == {
        ("t", 0): "LOG_DIR_NOT_FOUND",
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("nope", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert move(two) == {}


def test_of_a_partition_given_twice_the_last_directory_counts(two: World) -> None:
    here = dir_of(two, 0)
    assert move(two, ("/nope", "t", [0]), (here, "t", [0])) == {("t", 0): "NONE"}


def test_a_client_that_may_not_see_the_cluster_sees_no_directories(two: World) -> None:
    two.services.authorizer = Refusing(
        (Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME),
        (Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME),
    )
    answer = two.ask(describe(None))
    assert (answer.error_code, answer.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert move(two, (dir_of(two, 0), "t", [0])) == {("t", 0): "CLUSTER_AUTHORIZATION_FAILED"}
