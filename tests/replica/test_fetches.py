"""Fetch below the api floor: limits, waits, errors, and reads that never wait for a disk."""

from __future__ import annotations

import gc
import uuid
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster.image import PartitionInfo
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import EpochEnd, FetchEntry, FetchResult
from ottla.storage import upkeep
from ottla.storage.fs import RealFileSystem
from ottla.storage.log.reader import Isolation
from ottla.storage.log.validation import Origin
from ottla.storage.log.windows import WINDOW_BYTES
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.slow_disk import SlowFileSystem
from tests.replica.world import NODE, T0, T1, World, leading
from tests.storage.world import batch, marker

OTHER = 2
MUCH = 1 << 20


def entry(offset: int = 0, max_bytes: int = MUCH, key: TopicPartition = T0, **fields: int) -> FetchEntry:
    return FetchEntry(key, None, offset, max_bytes, **fields)


def data(result: FetchResult) -> bytes:
    assert result.records is not None
    return result.records if isinstance(result.records, bytes) else b"".join(result.records)


def sizes(world: World, *entries: FetchEntry, **params: int) -> list[int]:
    results = world.fetch(*entries, **params).results
    assert results is not None
    assert [result.size_bytes for result in results] == [len(data(result)) for result in results]
    return [result.size_bytes for result in results]


# -- what is read


def test_what_was_appended_comes_back(world: World) -> None:
    world.append(count=3)
    result = world.fetch(entry()).only
    assert (result.error_code, result.high_watermark, result.last_stable_offset) == (0, 3, 3)
    assert (result.log_start_offset, result.aborted) == (0, None)
    assert data(result) == world.log().segments.active.file.pread(MUCH, 0)
    assert world.metrics.topic("t").bytes_out == result.size_bytes


@pytest.mark.parametrize("value_bytes", [10, 100_000, WINDOW_BYTES])
def test_views_of_any_size_are_the_bytes_of_the_file(world: World, value_bytes: int) -> None:
    world.make_topic("t", leading(), max_message_bytes=2**30, internal_segment_bytes=2**30)
    for number in range(3):
        world.append(value=bytes([number]) * value_bytes)
    expected = b""
    for offset in range(3):
        expected = data(world.fetch(entry(offset, max_bytes=1)).only)
        assert expected[-5:-1] == bytes([offset]) * 4
    whole = data(world.fetch(entry(0, 2**30)).only)
    assert len(whole) == world.log().size_bytes
    assert whole.endswith(expected)


def test_a_view_follows_what_was_appended_after_its_window_was_mapped(world: World) -> None:
    world.append(value=b"a" * 100_000)
    held = world.fetch(entry()).only
    before = data(held)
    world.append(value=b"b" * 100_000)
    both = data(world.fetch(entry()).only)
    assert len(both) == 2 * len(before)
    assert data(held) == before


def test_records_stay_readable_after_their_segment_is_deleted(world: World) -> None:
    world.append(value=b"a" * 100_000)
    held = world.fetch(entry()).only
    before = data(held)
    world.drop_topic()
    world.runtime.advance(61_000)
    for log_dir, path in world.logs.take_doomed():
        upkeep.remove_dir(log_dir, path)
    assert data(held) == before


# -- limits


def test_each_partition_and_all_together_have_a_limit(world: World) -> None:
    world.make_topic("t", leading(), leading())
    one = len(batch())
    for _ in range(10):
        world.append(T0, T1)
    assert sizes(world, entry(0, 3 * one), entry(0, MUCH, T1)) == [3 * one, 10 * one]
    assert sizes(world, entry(0, 3 * one), entry(0, 4 * one, T1), max_bytes=5 * one) == [3 * one, 2 * one]
    assert sizes(world, entry(0), entry(0, MUCH, T1), max_bytes=10 * one) == [10 * one, 0]


def test_the_first_partition_that_has_something_gives_at_least_one_batch(world: World) -> None:
    world.make_topic("t", leading(), leading(), leading())
    one = len(batch())
    world.append(T1, TopicPartition("t", 2))
    entries = [entry(0, 1), entry(0, 1, T1), entry(0, 1, TopicPartition("t", 2))]
    assert sizes(world, *entries, max_bytes=1) == [0, one, 0]


def test_the_oldest_clients_get_a_cut_batch_and_no_more(world: World) -> None:
    world.append()
    assert sizes(world, entry(0, 20), hard_max_bytes=True) == [20]


def test_records_that_somebody_looks_into_are_copied_and_no_more_than_are_wanted(world: World) -> None:
    """To look into a map whose file was cut would end the process."""
    world.make_topic("t", leading(), max_message_bytes=2**30, internal_segment_bytes=2**30)
    one = len(batch(value=bytes(100_000)))
    for _ in range(5):
        world.append(value=bytes(100_000))
    for wanted, size in ((10, one), (one + 1, one + 1), (MUCH, 5 * one)):
        told = world.fetch(entry(), copied_bytes=wanted)
        world.runtime.run_pending()
        result = told.only
        assert isinstance(result.records, bytes)
        assert (len(result.records), result.size_bytes) == (size, 5 * one)


# -- waiting


def test_too_little_waits_until_the_time_is_over(world: World) -> None:
    told = world.fetch(entry(), max_wait_ms=500)
    assert told.is_waiting
    world.runtime.advance(499)
    assert told.is_waiting
    world.runtime.advance(1)
    assert (told.only.error_code, data(told.only)) == (0, b"")


def test_an_append_wakes_a_fetch(world: World) -> None:
    told = world.fetch(entry(), max_wait_ms=500)
    world.append()
    assert data(told.only)
    assert world.replicas.purgatories.fetch.delayed == 0


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for(world: World) -> None:
    world.make_topic("t", leading(), leading())
    one = len(batch())
    told = world.fetch(entry(), entry(0, MUCH, T1), max_wait_ms=500, min_bytes=3 * one)
    world.append(T0)
    world.append(T1)
    assert told.is_waiting
    world.append(T0)
    assert told.results is not None
    assert [result.size_bytes for result in told.results] == [2 * one, one]


def test_a_new_segment_ends_the_wait(world: World) -> None:
    world.append()
    told = world.fetch(entry(), max_wait_ms=500, min_bytes=MUCH)
    assert told.is_waiting
    world.log().roll()
    world.append()
    assert data(told.only)


def test_consumers_wait_for_the_high_watermark_and_followers_for_the_log_end(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    consumer = world.fetch(entry(), max_wait_ms=500)
    follower = world.fetch(entry(), max_wait_ms=500, replica_id=OTHER, isolation=Isolation.LOG_END)
    world.append()
    assert data(follower.only)
    assert consumer.is_waiting
    world.fetch(entry(1), replica_id=OTHER, isolation=Isolation.LOG_END)
    assert data(consumer.only)


def test_a_wait_ends_when_the_partition_is_gone(world: World) -> None:
    told = world.fetch(entry(), max_wait_ms=500)
    world.drop_topic()
    assert told.only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_cancelled_fetch_is_not_answered(world: World) -> None:
    told = world.fetch(entry(), max_wait_ms=500)
    world.replicas.cancel_fetch(told.wait)
    world.append()
    world.runtime.advance(1000)
    assert told.is_waiting


# -- errors


@pytest.mark.parametrize("offset", [0, 6])
def test_an_offset_outside_of_the_log_is_refused(world: World, offset: int) -> None:
    for _ in range(5):
        world.append()
    world.log().raise_start_offset(2)
    result = world.fetch(entry(offset), max_wait_ms=500).only
    assert result == FetchResult(T0, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert world.fetch(entry(5)).only.error_code == 0


def test_a_reader_that_knows_another_leader_is_told(world: World) -> None:
    world.make_topic("t", leading(epoch=5))
    codes = [
        world.fetch(entry(current_leader_epoch=epoch), max_wait_ms=500).only.error_code for epoch in (4, 6)
    ]
    assert codes == [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH]
    assert world.fetch(entry(current_leader_epoch=5)).only.error_code == 0


def test_a_broker_without_a_replica_is_refused(world: World) -> None:
    assert world.fetch(entry(), replica_id=7).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_topic_ids_are_checked(world: World) -> None:
    topic = world.image.topics["t"]
    other = world.make_topic("u")
    asked = [topic.topic_id, other.topic_id, uuid.UUID(int=9)]
    codes = [world.fetch(entry()._replace(topic_id=topic_id)).only.error_code for topic_id in asked]
    assert codes == [0, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID]
    # Only a session names a topic by an id that is not known any more, and Kafka tells it so.
    gone = FetchEntry(TopicPartition("x", 0), uuid.UUID(int=9), 0, 1)
    assert world.fetch(gone).only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elsewhere = FetchEntry(T1, topic.topic_id, 0, 1)
    assert world.fetch(elsewhere).only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_another_broker_leads_is_refused(world: World) -> None:
    world.make_topic("t", PartitionInfo(OTHER, (OTHER,), (OTHER,)))
    assert world.fetch(entry(), max_wait_ms=9).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_reader_of_another_history_is_told_where_it_parts(world: World) -> None:
    world.append(count=3)
    world.make_topic("t", leading(epoch=2))
    world.append(count=3)
    diverging = world.fetch(entry(5, last_fetched_epoch=0), max_wait_ms=500).only
    assert (diverging.diverging_epoch, data(diverging)) == (EpochEnd(0, 3), b"")
    between = world.fetch(entry(3, last_fetched_epoch=1)).only
    assert between.diverging_epoch == EpochEnd(0, 3)
    same = world.fetch(entry(6, last_fetched_epoch=2)).only
    assert (same.error_code, same.diverging_epoch) == (0, None)
    unknown = world.fetch(entry(6, last_fetched_epoch=7)).only
    assert unknown.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_has_not_appended_yet_knows_where_its_epoch_begins(world: World) -> None:
    """An old leader comes back as a follower, with records of its own that nobody else has."""
    world.append(count=3)
    world.make_topic("t", leading(isr=(NODE, OTHER), epoch=2))
    came_back = world.fetch(entry(5, last_fetched_epoch=1), replica_id=OTHER, max_wait_ms=500).only
    assert came_back == FetchResult(T0, 0, 3, 3, 0, None, b"", EpochEnd(0, 3))
    assert world.replicas.end_offset_for_epoch(T0, -1, 1)[2:] == came_back.diverging_epoch


# -- followers


@pytest.mark.parametrize(
    "asked",
    [
        entry(6, current_leader_epoch=1),
        entry(6, current_leader_epoch=3),
        entry(6, last_fetched_epoch=0),
        entry(6, last_fetched_epoch=7),
        entry(7),
    ],
    ids=["old epoch", "unknown epoch", "diverged", "unknown history", "past the end"],
)
@pytest.mark.parametrize("is_lent", [False, True])
def test_a_follower_whose_fetch_is_refused_moves_nothing(
    world: World, asked: FetchEntry, is_lent: bool
) -> None:
    world.append(count=3)
    world.make_topic("t", leading(isr=(NODE, OTHER), epoch=2))
    world.append(count=3)
    world.runtime.run_pending()
    partition = world.replicas.partition(T0)
    assert partition is not None
    if is_lent:
        partition.lend()
    high_watermark = world.log().high_watermark
    refused = world.fetch(asked, replica_id=OTHER, isolation=Isolation.LOG_END)
    world.runtime.run_pending()
    assert refused.only.error_code or refused.only.diverging_epoch is not None
    assert world.log().high_watermark == high_watermark
    assert partition.low_watermark(world.log()) == -1


def test_a_follower_hears_of_the_high_watermark_that_its_fetch_moved(world: World) -> None:
    world.make_topic("t", leading(isr=(NODE, OTHER)))
    world.append(count=3)
    fetched = world.fetch(entry(3), replica_id=OTHER, isolation=Isolation.LOG_END).only
    assert (fetched.high_watermark, world.log().high_watermark) == (3, 3)


# -- transactions


def test_committed_readers_stop_at_an_open_transaction_and_hear_of_aborted_ones(world: World) -> None:
    txn: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    world.append(base_sequence=0, **txn)
    result = world.fetch(entry(), isolation=Isolation.COMMITTED).only
    assert (result.high_watermark, result.last_stable_offset, data(result)) == (1, 0, b"")
    waiting = world.fetch(entry(), isolation=Isolation.COMMITTED, max_wait_ms=500)
    told: list[object] = []
    world.replicas.append(
        acks=1, timeout_ms=0, entries=[(T0, marker(5))], done=told.extend, origin=Origin.COORDINATOR
    )
    assert waiting.only.last_stable_offset == 2
    assert waiting.only.aborted is not None
    assert [(aborted.producer_id, aborted.first_offset) for aborted in waiting.only.aborted] == [(5, 0)]
    assert world.fetch(entry()).only.aborted is None


# -- cold pages


@pytest.fixture
def cold(tmp_path: Path) -> World:
    world = World(str(tmp_path), fs=SlowFileSystem(RealFileSystem()), runtime=SimulatedRuntime(queued=True))
    world.make_topic()
    world.runtime.run_pending()
    return world


@pytest.mark.parametrize("value_bytes", [10, 200_000])
def test_cold_pages_are_read_on_another_thread_before_the_answer(cold: World, value_bytes: int) -> None:
    world, fs = cold, cold.fs
    assert isinstance(fs, SlowFileSystem)
    world.append(value=b"a" * value_bytes)
    path = world.log().segments.active.path(".log")
    fs.cool_down(path)
    told = world.fetch(entry(), max_wait_ms=500)
    assert (told.is_waiting, fs.warmed) == (True, [])
    world.runtime.run_pending()
    assert fs.warmed == [path]
    assert told.only.size_bytes == world.log().size_bytes
    world.logs.abandon()


def test_a_closed_segment_is_looked_up_on_another_thread_first(cold: World) -> None:
    world, fs = cold, cold.fs
    assert isinstance(fs, SlowFileSystem)
    for _ in range(100):
        world.append(value=b"a" * 1000)
    world.log().roll()
    world.append()
    world.runtime.run_pending()
    fs.cool_down(world.log().segments.first.path(".log"))
    told = world.fetch(entry(40), max_wait_ms=500)
    assert told.is_waiting
    assert world.runtime.run_pending() == 1
    assert fs.warmed
    assert told.only.size_bytes > 50_000
    world.logs.abandon()


def test_pages_that_do_not_stay_in_memory_are_sent_all_the_same(cold: World) -> None:
    world, fs = cold, cold.fs
    assert isinstance(fs, SlowFileSystem)
    world.append()
    fs.cool_down(world.log().segments.active.path(".log"), for_good=True)
    told = world.fetch(entry())
    assert told.is_waiting
    world.runtime.run_pending()
    assert data(told.only)
    world.logs.abandon()


# -- many partitions


def test_windows_stay_few_whatever_is_read(world: World) -> None:
    world.make_topic("t", *[leading()] * 40)
    keys = [TopicPartition("t", number) for number in range(40)]
    world.append(*keys, value=b"a" * 100_000)
    gc.disable()
    try:
        for key in keys:
            world.fetch(entry(0, MUCH, key))
            world.fetch(entry(1, MUCH, key), max_wait_ms=500)
            world.append(key, value=b"a" * 100_000)
    finally:
        gc.enable()
    maps = Path("/proc/self/maps").read_text().splitlines()
    mine = [line for line in maps if world.config.log_dirs[0] in line and line.endswith(".log")]
    assert 0 < len(mine) <= 16
