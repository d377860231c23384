"""Produce below the api floor: who may append, what is answered, and when."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster.image import PartitionInfo
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import FetchEntry
from ottla.storage.fs import RealFileSystem
from ottla.storage.log.reader import Isolation
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.disks.small_disk import SmallFileSystem
from tests.replica.world import NODE, T0, T1, World, leading
from tests.storage.world import batch

OTHER = 2


def follower_fetches(world: World, offset: int, key: TopicPartition = T0) -> None:
    entry = FetchEntry(key, None, offset, 1000)
    world.fetch(entry, replica_id=OTHER, isolation=Isolation.LOG_END)


# -- one replica


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_an_append_is_answered_at_once_where_no_other_replica_is_in_sync(world: World, acks: int) -> None:
    told = world.append(acks=acks, count=3)
    assert told.wait is None
    assert told.only == (T0, 0, None, 0, -1, 0, ())
    assert world.append(acks=acks).only.base_offset == 3
    assert world.log().high_watermark == 4


@pytest.mark.parametrize("acks", [-2, 2, 3, 32767])
def test_other_acks_are_refused_for_every_partition_and_nothing_is_appended(world: World, acks: int) -> None:
    told = world.append(T0, T1, acks=acks)
    assert told.results is not None
    assert [result.error_code for result in told.results] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert world.log().end_offset == 0


def test_a_topic_that_stamps_records_says_when(world: World) -> None:
    world.make_topic("t", leading(), message_timestamp_type="LogAppendTime")
    assert world.append().only.log_append_time == world.runtime.now_ms()


def test_a_duplicate_is_answered_with_the_first_offset(world: World) -> None:
    world.append(count=2, producer_id=7, producer_epoch=0, base_sequence=0)
    world.append(producer_id=7, producer_epoch=0, base_sequence=2)
    again = world.append(count=2, producer_id=7, producer_epoch=0, base_sequence=0, acks=-1)
    assert (again.only.error_code, again.only.base_offset) == (0, 0)
    assert world.log().end_offset == 3


# -- who is refused


def test_a_partition_that_nobody_knows_does_not_exist(world: World) -> None:
    told = world.append(TopicPartition("x", 0), T1)
    assert told.results is not None
    assert [result.error_code for result in told.results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


@pytest.mark.parametrize(
    "info",
    [PartitionInfo(OTHER, (OTHER,), (OTHER,)), PartitionInfo(OTHER, (NODE, OTHER), (NODE, OTHER))],
    ids=["elsewhere", "follower"],
)
def test_a_partition_that_another_broker_leads_is_refused(world: World, info: PartitionInfo) -> None:
    world.make_topic("t", leading(), info)
    assert world.append(T1).only == (T1, ErrorCode.NOT_LEADER_OR_FOLLOWER, None, -1, -1, -1, ())


def test_until_its_log_is_made_a_partition_is_not_led(tmp_path: Path) -> None:
    world = World(str(tmp_path), runtime=SimulatedRuntime(queued=True))
    world.make_topic()
    ready: list[bool] = []
    world.replicas.when_ready(lambda: ready.append(True))
    assert world.append().only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not ready
    world.runtime.run_pending()
    assert ready
    assert world.append().only.error_code == 0
    world.logs.abandon()


def test_one_partitions_failure_is_no_others(world: World) -> None:
    world.make_topic("t", *[leading()] * 4, max_message_bytes=200)
    corrupt = bytearray(batch())
    corrupt[-1] ^= 1
    entries: list[tuple[TopicPartition, bytes | bytearray]] = [
        (T0, batch()),
        (T1, batch(20)),
        (TopicPartition("t", 2), corrupt),
        (TopicPartition("t", 3), batch()),
    ]
    told: list[Any] = []
    world.replicas.append(acks=1, timeout_ms=0, entries=entries, done=told.extend)
    codes = [result.error_code for result in told]
    assert codes == [0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, 0]
    assert [result.base_offset for result in told] == [0, -1, -1, 0]
    metrics = world.metrics.topic("t")
    assert metrics.bytes_rejected == len(batch(20))
    assert (metrics.produce_requests, metrics.failed_produce_requests) == (4, 0)
    assert (metrics.messages_in, metrics.bytes_in) == (2, 2 * len(batch()))


def test_a_full_disk_is_told_in_words_with_a_code_that_nobody_repeats(tmp_path: Path) -> None:
    fs = SmallFileSystem(RealFileSystem(), 1 << 20)
    world = World(str(tmp_path), fs=fs)
    world.make_topic()
    assert world.append().only.error_code == 0
    fs.capacity_bytes = fs.used_bytes
    refused = [world.append(acks=acks).only for acks in (1, -1)]
    for result in refused:
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert result.error_message == "the disk of the broker is full (ENOSPC); nothing was written"
    metrics = world.metrics.topic("t")
    assert (metrics.failed_produce_requests, metrics.bytes_rejected, metrics.messages_in) == (2, 0, 1)
    fs.capacity_bytes = 1 << 20
    world.runtime.advance(2_000)
    assert world.append().only.base_offset == 1
    world.logs.abandon()


def test_only_records_that_are_too_large_count_as_rejected_bytes(world: World) -> None:
    world.make_topic("t", leading(), internal_segment_bytes=100)
    assert world.append(count=3).only.error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert world.metrics.topic("t").bytes_rejected == 0


def test_a_partition_that_is_elsewhere_or_nowhere_counts_as_a_request(world: World) -> None:
    world.make_topic("t", leading(), PartitionInfo(OTHER, (OTHER,), (OTHER,)))
    world.append(T1, TopicPartition("x", 0))
    assert world.metrics.topic("t").produce_requests == 1
    assert world.metrics.all_topics().produce_requests == 2


def test_a_duplicate_counts_its_bytes_as_kafka_does(world: World) -> None:
    for _ in range(2):
        world.append(producer_id=7, producer_epoch=0, base_sequence=0)
    sent = len(batch(producer_id=7, producer_epoch=0, base_sequence=0))
    assert world.metrics.topic("t").bytes_in == 2 * sent


def test_records_that_break_a_rule_are_named(world: World) -> None:
    world.make_topic("t", leading(), cleanup_policy=frozenset({"compact"}))
    result = world.append(count=2, key=None).only
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in result.record_errors] == [0, 1]
    assert result.error_message
    assert result.log_start_offset == 0


def test_what_nobody_expected_is_logged_and_told_without_details(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    nonsense: Any = "no bytes"
    result = world.append(records=nonsense).only
    assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "appending to t-0 failed" in caplog.text
    assert world.metrics.topic("t").failed_produce_requests == 1


def test_a_failed_write_takes_one_directory_offline_and_leaves_the_other(tmp_path: Path) -> None:
    fs = FaultyFileSystem(RealFileSystem())
    world = World(str(tmp_path / "a"), str(tmp_path / "b"), fs=fs)
    world.make_topic("t", leading(), leading())
    assert world.log(T0).dir is not world.log(T1).dir
    fs.fault = Fault(Point("pwrite", "*.log", "ottla.storage.log.segment._write"), error=errno.EIO)
    world.append(T0)
    results = [world.append(key).only.error_code for key in (T0, T0, T1)]
    fs.fault = None
    assert results == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    fetched = world.fetch(FetchEntry(T0, None, 0, 1000)).only
    assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.logs.abandon()


# -- more replicas: the roles are here already


@pytest.fixture
def replicated(world: World) -> World:
    world.make_topic("t", leading(isr=(NODE, OTHER)), min_insync_replicas=2)
    return world


def test_acks_all_waits_until_every_replica_in_sync_has_it(replicated: World) -> None:
    world = replicated
    told = world.append(acks=-1, count=2)
    assert told.is_waiting
    follower_fetches(world, 1)
    assert told.is_waiting
    follower_fetches(world, 2)
    assert (told.only.error_code, told.only.base_offset) == (0, 0)
    assert world.log().high_watermark == 2
    assert world.replicas.purgatories.produce.delayed == 0


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_never_wait_for_replicas(replicated: World, acks: int) -> None:
    assert replicated.append(acks=acks).only.error_code == 0
    assert replicated.log().high_watermark == 0


def test_what_is_not_replicated_in_time_stays_but_is_told_as_timed_out(replicated: World) -> None:
    world = replicated
    told = world.append(acks=-1, timeout_ms=300)
    world.runtime.advance(299)
    assert told.is_waiting
    world.runtime.advance(1)
    assert (told.only.error_code, told.only.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert world.log().end_offset == 1


def test_a_wait_for_two_partitions_is_answered_with_both(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)), leading(isr=(NODE, OTHER)))
    told = world.append(T0, T1, acks=-1, timeout_ms=300)
    follower_fetches(world, 1, T1)
    assert told.is_waiting
    world.runtime.advance(300)
    assert told.results is not None
    assert [result.error_code for result in told.results] == [ErrorCode.REQUEST_TIMED_OUT, 0]


def test_too_few_replicas_in_sync_are_refused_before_the_append(replicated: World) -> None:
    world = replicated
    world.make_topic("t", leading(isr=(NODE,), replicas=(NODE, OTHER)), min_insync_replicas=2)
    assert world.append(acks=-1).only.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.log().end_offset == 0
    assert world.append(acks=1).only.error_code == 0
    assert world.log().high_watermark == 0, "not raised while too few are in sync"


def test_no_more_replicas_are_asked_for_than_there_are(world: World) -> None:
    world.make_topic("t", leading(), min_insync_replicas=3)
    assert world.append(acks=-1).only.error_code == 0


def test_a_replica_that_leaves_no_longer_holds_the_others_up(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    told = world.append(acks=-1)
    world.make_topic("t", leading(isr=(NODE,), replicas=(NODE, OTHER)))
    assert told.only.error_code == 0


def test_replicas_lost_after_the_append_are_told_apart(replicated: World) -> None:
    world = replicated
    told = world.append(acks=-1)
    world.log().raise_high_watermark(1)
    world.make_topic("t", leading(isr=(NODE,), replicas=(NODE, OTHER)), min_insync_replicas=2)
    assert (told.only.error_code, told.only.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)


@pytest.mark.parametrize("change", ["another leader", "another epoch", "deleted"])
def test_a_wait_ends_when_the_partition_is_led_no_more(replicated: World, change: str) -> None:
    world = replicated
    told = world.append(acks=-1)
    if change == "deleted":
        world.drop_topic()
    elif change == "another leader":
        world.make_topic("t", PartitionInfo(OTHER, (NODE, OTHER), (NODE, OTHER), 1))
    else:
        world.make_topic("t", leading(isr=(NODE, OTHER), epoch=1), min_insync_replicas=2)
    assert told.only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_cancelled_wait_is_not_answered(replicated: World) -> None:
    world = replicated
    told = world.append(acks=-1, timeout_ms=100)
    world.replicas.cancel_append(told.wait)
    world.runtime.advance(200)
    assert told.is_waiting
    assert world.replicas.purgatories.sizes()["Produce"] <= 1
