"""ListOffsets and OffsetForLeaderEpoch: ends, starts and times of partitions, and where epochs end."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.testing.runtime import START_MS
from tests.api.world import Refusing, World

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
NONE = (-1, -1, -1)  # timestamp, offset, leader epoch of no record


def ask(
    world: World, *partitions: tuple[int, ...], version: int = 11, topic: str = "t", **fields: Any
) -> Any:
    """(error, timestamp, offset, epoch) by partition; partitions are (number, timestamp, leader epoch)."""
    fields.setdefault("replica_id", -1)
    names = ("partition_index", "timestamp", "current_leader_epoch")
    wanted = [ListOffsetsPartition(**dict(zip(names, given, strict=False))) for given in partitions]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wanted)], **fields)
    answer = world.ask(request, version)
    return {
        p.partition_index: (ErrorCode(p.error_code).name, p.timestamp, p.offset, p.leader_epoch)
        for found in answer.topics
        for p in found.partitions
    }


@pytest.fixture
def ten(world: World) -> World:
    """Ten records in partition 0, a second apart, one batch each; partition 1 is empty."""
    world.make_topic("t", 2)
    for number in range(10):
        world.append("t", timestamp=START_MS + 1000 * number)
    return world


TIMES = [  # the time, the first version that knows it, and the timestamp, offset and epoch it finds
    (LATEST, 1, (-1, 10, 0)),
    (EARLIEST, 1, (-1, 0, 0)),
    (MAX_TIMESTAMP, 7, (START_MS + 9000, 9, 0)),
    (EARLIEST_LOCAL, 8, (-1, 0, 0)),
    (LATEST_TIERED, 9, NONE),
    (EARLIEST_PENDING_UPLOAD, 11, NONE),
    (0, 1, (START_MS, 0, 0)),
    (START_MS + 3500, 1, (START_MS + 4000, 4, 0)),
    (START_MS + 4000, 1, (START_MS + 4000, 4, 0)),
    (START_MS + 9001, 1, NONE),
    (-7, 99, NONE),
]


def test_every_version_answers_the_times_it_knows(ten: World) -> None:
    for version in range(1, 12):
        for timestamp, since, expected in TIMES:
            code, found, offset, epoch = ask(ten, (0, timestamp), version=version)[0]
            if version < since:
                assert (code, found, offset, epoch) == ("UNSUPPORTED_VERSION", *NONE)
            else:
                assert (code, found, offset) == ("NONE", *expected[:2])
                assert epoch == (expected[2] if version >= 4 else -1)


def test_an_empty_partition_begins_and_ends_at_0(ten: World) -> None:
    assert ask(ten, (1, LATEST)) == {1: ("NONE", -1, 0, 0)}
    assert ask(ten, (1, EARLIEST)) == {1: ("NONE", -1, 0, 0)}
    assert ask(ten, (1, MAX_TIMESTAMP)) == {1: ("NONE", *NONE)}
    assert ask(ten, (1, 0)) == {1: ("NONE", *NONE)}


def test_a_partition_asked_for_twice_is_refused_once(ten: World) -> None:
    assert ask(ten, (0, LATEST), (0, EARLIEST), (1, LATEST)) == {
        0: ("INVALID_REQUEST", *NONE),
        1: ("NONE", -1, 0, 0),
    }


def test_unknown_partitions_and_epochs_are_told(ten: World) -> None:
    assert ask(ten, (0, LATEST, 0), (1, LATEST, 5), (9, LATEST)) == {
        0: ("NONE", -1, 10, 0),
        1: ("UNKNOWN_LEADER_EPOCH", *NONE),
        9: ("UNKNOWN_TOPIC_OR_PARTITION", *NONE),
    }
    assert ask(ten, (0, LATEST), topic="nope") == {0: ("UNKNOWN_TOPIC_OR_PARTITION", *NONE)}
    ten.register(2)
    ten.make_topic("far", 4)
    codes = {code for code, *_ in ask(ten, *((n, LATEST) for n in range(4)), topic="far").values()}
    assert codes == {"NONE", "NOT_LEADER_OR_FOLLOWER"}


def test_isolation_levels(ten: World) -> None:
    assert ask(ten, (0, LATEST), isolation_level=1) == {0: ("NONE", -1, 10, 0)}
    assert ask(ten, (0, LATEST), isolation_level=7) == {0: ("UNKNOWN_SERVER_ERROR", *NONE)}


@pytest.mark.parametrize("replica_id", [-2, 5])
def test_replicas_may_ask_too(ten: World, replica_id: int) -> None:
    assert ask(ten, (0, LATEST), replica_id=replica_id) == {0: ("NONE", -1, 10, 0)}


def test_topics_without_partitions_are_not_answered(ten: World) -> None:
    assert ten.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[])])).topics == []


def test_a_client_that_may_not_see_a_topic_learns_no_offsets(ten: World) -> None:
    ten.services.authorizer = Refusing((Operation.DESCRIBE, Resource.TOPIC, "t"))
    assert ask(ten, (0, LATEST)) == {0: ("TOPIC_AUTHORIZATION_FAILED", *NONE)}
    assert ends(ten, (0, 0)) == [("TOPIC_AUTHORIZATION_FAILED", 0, -1, -1)]


# -- OffsetForLeaderEpoch


def ends(world: World, *partitions: tuple[int, ...], version: int = 4, topic: str = "t") -> Any:
    """(error, partition, epoch, end); partitions are (number, epoch, current leader epoch)."""
    names = ("partition", "leader_epoch", "current_leader_epoch")
    wanted = [OffsetForLeaderPartition(**dict(zip(names, given, strict=False))) for given in partitions]
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=wanted)]
    )
    (found,) = world.ask(request, version).topics
    return [
        (ErrorCode(p.error_code).name, p.partition, p.leader_epoch, p.end_offset) for p in found.partitions
    ]


def test_every_version_tells_where_epochs_end(ten: World) -> None:
    for version in range(2, 5):
        asked = [(0, 0), (0, 5), (0, -1), (0, 0, 0), (0, 0, 4), (9, 0), (1, 0)]
        assert ends(ten, *asked, version=version) == [
            ("NONE", 0, 0, 10),
            ("NONE", 0, -1, -1),
            ("NONE", 0, -1, -1),
            ("NONE", 0, 0, 10),
            ("UNKNOWN_LEADER_EPOCH", 0, -1, -1),
            ("UNKNOWN_TOPIC_OR_PARTITION", 9, -1, -1),
            ("NONE", 1, 0, 0),
        ]
    assert ends(ten, (0, 0), topic="nope") == [("UNKNOWN_TOPIC_OR_PARTITION", 0, -1, -1)]
