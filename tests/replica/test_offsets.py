"""Offsets by time and by epoch, and DeleteRecords."""

from __future__ import annotations

import pytest

from ottla.cluster.image import PartitionInfo
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import DeleteResult, EpochEndResult, FetchEntry, OffsetResult
from ottla.storage.log.reader import Isolation
from ottla.testing.runtime import START_MS
from tests.replica.world import NODE, T0, T1, World, leading

OTHER = 2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


def listed(
    world: World,
    timestamp: int,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
    epoch: int = -1,
    key: TopicPartition = T0,
) -> OffsetResult:
    told: list[OffsetResult] = []
    world.replicas.list_offset(key, timestamp, isolation, epoch, told.append)
    (result,) = told
    return result


def deleted(world: World, offset: int, key: TopicPartition = T0) -> DeleteResult:
    told: list[dict[TopicPartition, DeleteResult]] = []
    world.replicas.delete_records({key: offset}, 1000, told.append)
    return told[0][key]


# -- by time


def test_the_first_and_the_last_offset(world: World) -> None:
    world.make_topic("t", leading(epoch=3))
    assert listed(world, EARLIEST) == (T0, 0, -1, 0, 3)
    for _ in range(5):
        world.append()
    world.log().raise_start_offset(2)
    assert listed(world, EARLIEST) == (T0, 0, -1, 2, 3)
    assert listed(world, EARLIEST_LOCAL) == (T0, 0, -1, 2, 3)
    assert listed(world, LATEST) == (T0, 0, -1, 5, 3)


def test_the_last_offset_is_what_the_reader_may_see(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    world.append(count=3)
    assert listed(world, LATEST).offset == 0
    assert listed(world, LATEST, Isolation.LOG_END).offset == 3
    world.make_topic("t", leading())
    world.append(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert listed(world, LATEST).offset == 4
    assert listed(world, LATEST, Isolation.COMMITTED).offset == 3


def test_by_time_the_first_record_at_or_after_it(world: World) -> None:
    world.append(count=3, timestamp=START_MS)
    world.append(count=3, timestamp=START_MS + 100)
    assert listed(world, START_MS - 5) == (T0, 0, START_MS, 0, 0)
    assert listed(world, START_MS + 2) == (T0, 0, START_MS + 2, 2, 0)
    assert listed(world, START_MS + 3) == (T0, 0, START_MS + 100, 3, 0)
    assert listed(world, START_MS + 103) == (T0, 0, -1, -1, -1)


def test_the_record_with_the_largest_timestamp(world: World) -> None:
    assert listed(world, MAX_TIMESTAMP) == (T0, 0, -1, -1, -1)
    world.append(count=2, timestamp=START_MS + 100)
    world.append(timestamp=START_MS)
    assert listed(world, MAX_TIMESTAMP) == (T0, 0, START_MS + 101, 1, 0)


def test_what_the_reader_may_not_see_is_not_found(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    world.append(timestamp=START_MS)
    assert listed(world, START_MS).offset == -1
    assert listed(world, MAX_TIMESTAMP).offset == -1
    assert listed(world, START_MS, Isolation.LOG_END).offset == 0


@pytest.mark.parametrize("timestamp", [LATEST_TIERED, PENDING_UPLOAD])
def test_there_is_nothing_in_tiered_storage(world: World, timestamp: int) -> None:
    world.append()
    assert listed(world, timestamp) == (T0, 0, -1, -1, -1)


def test_who_asks_the_wrong_broker_is_told(world: World) -> None:
    world.make_topic("t", leading(epoch=5), PartitionInfo(OTHER, (OTHER,), (OTHER,)))
    codes = [
        listed(world, LATEST, epoch=4).error_code,
        listed(world, LATEST, epoch=6).error_code,
        listed(world, LATEST, key=T1).error_code,
        listed(world, LATEST, key=TopicPartition("x", 0)).error_code,
    ]
    assert codes == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# -- by leader epoch


def test_where_an_epoch_ends(world: World) -> None:
    world.append(count=3)
    world.make_topic("t", leading(epoch=2))
    world.append(count=4)
    world.make_topic("t", leading(epoch=5))
    ends = [world.replicas.end_offset_for_epoch(T0, -1, epoch)[2:] for epoch in (-1, 0, 1, 2, 4, 5, 6)]
    assert ends == [(-1, -1), (0, 3), (0, 3), (2, 7), (2, 7), (5, 7), (-1, -1)]
    fenced = world.replicas.end_offset_for_epoch(T0, 4, 2)
    assert fenced == EpochEndResult(T0, ErrorCode.FENCED_LEADER_EPOCH)


# -- deleting


def test_records_below_an_offset_are_gone(world: World) -> None:
    for _ in range(5):
        world.append()
    assert deleted(world, 2) == DeleteResult(0, 2)
    assert deleted(world, 1) == DeleteResult(0, 2)
    assert world.fetch(FetchEntry(T0, None, 1, 1000)).only.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert deleted(world, -1) == DeleteResult(0, 5)
    assert world.append().only.log_start_offset == 5


@pytest.mark.parametrize("offset", [4, -2])
def test_an_offset_past_the_high_watermark_is_refused(world: World, offset: int) -> None:
    world.append(count=3)
    assert deleted(world, offset) == DeleteResult(ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert world.log().start_offset == 0


def test_a_log_that_is_only_compacted_keeps_its_records(world: World) -> None:
    world.make_topic("t", leading(), cleanup_policy=frozenset({"compact"}))
    world.append()
    assert deleted(world, 1) == DeleteResult(ErrorCode.POLICY_VIOLATION, -1)


def test_each_partition_is_answered(world: World) -> None:
    world.append()
    told: list[dict[TopicPartition, DeleteResult]] = []
    unknown = TopicPartition("x", 0)
    world.replicas.delete_records({T0: 1, unknown: 0}, 1000, told.append)
    assert told == [{T0: (0, 1), unknown: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)}]
    world.replicas.delete_records({}, 1000, told.append)
    assert told[1] == {}


@pytest.mark.parametrize("in_time", [True, False])
def test_the_answer_waits_until_every_replica_has_followed(world: World, in_time: bool) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    world.append(count=3)

    def follower(log_start: int) -> None:
        entry = FetchEntry(T0, None, 3, 1000, log_start_offset=log_start)
        world.fetch(entry, replica_id=OTHER, isolation=Isolation.LOG_END)

    follower(0)
    told: list[dict[TopicPartition, DeleteResult]] = []
    world.replicas.delete_records({T0: 2}, 500, told.append)
    follower(1)
    assert told == []
    if in_time:
        follower(2)
        assert told == [{T0: DeleteResult(0, 2)}]
    else:
        world.runtime.advance(500)
        assert told == [{T0: DeleteResult(ErrorCode.REQUEST_TIMED_OUT, 1)}]
