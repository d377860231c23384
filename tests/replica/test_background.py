"""Regular work, driven by the clock alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import FetchEntry
from ottla.storage import checkpoint, layout
from ottla.storage.fs import RealFileSystem
from tests.disks.faults import FaultyFileSystem
from tests.replica.world import T0, World, leading
from tests.storage.world import records_in

MINUTE_MS = 60_000


def written(world: World, name: str) -> dict[TopicPartition, int]:
    return checkpoint.read_offsets(world.fs, f"{world.config.log_dirs[0]}/{name}")


def pass_time(world: World, ms: int) -> None:
    world.runtime.advance(ms)
    world.runtime.run_pending()


def test_high_watermarks_are_written_every_five_seconds(world: World) -> None:
    world.append(count=3)
    pass_time(world, 4999)
    assert written(world, layout.HIGH_WATERMARKS).get(T0, 0) == 0
    pass_time(world, 1)
    assert written(world, layout.HIGH_WATERMARKS)[T0] == 3


def test_an_idle_broker_writes_nothing(tmp_path: Path) -> None:
    fs = FaultyFileSystem(RealFileSystem())
    world = World(str(tmp_path), fs=fs)
    world.make_topic()
    world.append()
    pass_time(world, 20 * MINUTE_MS)
    fs.seen.clear()
    pass_time(world, 20 * MINUTE_MS)
    assert not [point for point in fs.seen if point.kind in ("pwrite", "sync", "rename", "create")]
    world.logs.abandon()


def test_what_a_start_has_recovered_is_flushed_soon(world: World) -> None:
    world.append(count=3)
    world.logs.abandon()
    world.start()
    world.runtime.run_pending()
    assert world.log().recovery_point == 3


def test_recovery_points_and_log_starts_are_written_every_minute(world: World) -> None:
    world.append(count=3)
    world.log().flush()
    world.log().raise_start_offset(2)
    pass_time(world, 2 * MINUTE_MS)
    assert written(world, layout.RECOVERY_POINTS) == {T0: 3}
    assert written(world, layout.LOG_START_OFFSETS) == {T0: 2}


@pytest.mark.parametrize("flush_messages", [1, 2**63 - 1])
def test_old_segments_go_and_their_files_after_a_delay(world: World, flush_messages: int) -> None:
    world.make_topic("t", leading(), retention_ms=10 * MINUTE_MS, flush_messages=flush_messages)
    world.append()
    world.log().roll()
    world.append(timestamp=world.runtime.now_ms() + 30 * MINUTE_MS)
    pass_time(world, 12 * MINUTE_MS)
    assert world.log().start_offset == 1
    assert world.fetch(FetchEntry(T0, None, 0, 1000)).only.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert list(Path(world.log().path).glob("*.deleted"))
    pass_time(world, 12 * MINUTE_MS)
    assert not list(Path(world.log().path).glob("*.deleted"))


def test_the_only_segment_goes_too_when_it_is_old(world: World) -> None:
    world.make_topic("t", leading(), retention_ms=10 * MINUTE_MS)
    world.append(count=4)
    pass_time(world, 20 * MINUTE_MS)
    assert (world.log().start_offset, world.append().only.base_offset) == (4, 4)


def test_a_deleted_topics_directory_goes_after_a_delay(world: World) -> None:
    world.drop_topic()
    data = Path(world.config.log_dirs[0])
    assert [path.name[-7:] for path in data.iterdir() if path.is_dir()] == ["-delete"]
    pass_time(world, 12 * MINUTE_MS)
    assert [path for path in data.iterdir() if path.is_dir()] == []


def test_logs_are_flushed_by_time(tmp_path: Path) -> None:
    world = World(str(tmp_path), log_flush_scheduler_interval_ms=1000)
    world.make_topic("t", leading(), flush_ms=5000)
    world.append()
    pass_time(world, 4_000)
    assert world.log().recovery_point == 0
    pass_time(world, 1_000)
    assert world.log().recovery_point == 1
    world.append()
    pass_time(world, 4_000)  # counted from the last flush
    assert world.log().recovery_point == 1
    pass_time(world, 1_000)
    assert world.log().recovery_point == 2
    world.logs.abandon()


def test_flush_ms_works_by_itself_and_no_record_waits_twice_as_long(world: World) -> None:
    """Kafka also wants log.flush.scheduler.interval.ms; here the shortest flush.ms of all topics is enough."""
    world.make_topic("t", leading(), flush_ms=5000)
    pass_time(world, 4_999)
    world.append()
    pass_time(world, 1)
    assert world.log().recovery_point == 1  # the last flush was long ago
    world.append()
    pass_time(world, 9_999)
    assert world.log().recovery_point == 2


def test_a_shorter_flush_ms_counts_from_when_it_is_set(world: World) -> None:
    world.make_topic("t", leading(), flush_ms=600_000)
    world.append()
    pass_time(world, 2_000)
    world.make_topic("t", leading(), flush_ms=1000)
    pass_time(world, 1_000)
    assert world.log().recovery_point == 1


def test_flush_ms_also_holds_where_flush_messages_has_lent_the_log(world: World) -> None:
    world.make_topic("t", leading(), flush_ms=5000, flush_messages=100)
    world.append(count=3)
    pass_time(world, 5_000)
    assert world.log().recovery_point == 3


@pytest.mark.parametrize("flush_messages", [1, 2**63 - 1])
def test_compacted_topics_are_cleaned_and_read_as_before(world: World, flush_messages: int) -> None:
    world.make_topic(
        "t", leading(), cleanup_policy=frozenset({"compact"}), flush_messages=flush_messages,
        min_cleanable_dirty_ratio=0.1,
    )  # fmt: skip
    for number in range(5):
        world.append(key=b"k", value=b"%d" % number)
        world.append(key=b"only%d" % number)
    world.log().roll()
    world.append(key=b"last")
    pass_time(world, MINUTE_MS)
    assert written(world, layout.CLEANER_OFFSETS) == {T0: 10}
    fetched = world.fetch(FetchEntry(T0, None, 0, 1 << 20)).only
    assert isinstance(fetched.records, list | bytes)
    data = b"".join(fetched.records) if isinstance(fetched.records, list) else fetched.records
    assert [record.offset for record in records_in(data)] == [1, 3, 5, 7, 8, 9]


def test_silent_producers_are_forgotten(world: World) -> None:
    world.append(producer_id=7, producer_epoch=0, base_sequence=0)
    pass_time(world, 23 * 60 * MINUTE_MS)
    assert 7 in world.log().producers.producers
    pass_time(world, 2 * 60 * MINUTE_MS)
    assert 7 not in world.log().producers.producers


def test_after_a_stop_nothing_is_begun_any_more(world: World) -> None:
    stopped: list[bool] = []
    world.append()
    world.replicas.stop(lambda: stopped.append(True))
    assert stopped == [True]
    pass_time(world, 60 * MINUTE_MS)
    assert written(world, layout.HIGH_WATERMARKS).get(T0, 0) == 0
    assert world.runtime.timers == 0
