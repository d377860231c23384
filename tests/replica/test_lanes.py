"""Logs that are flushed before anything is answered, and logs that are lent: nothing waits on the loop."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import AppendResult, FetchEntry
from ottla.server.loop import AsyncRuntime
from ottla.storage.fs import RealFileSystem
from ottla.storage.handles import HandlePool, Releasable
from ottla.storage.log.reader import Isolation
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.disks.slow_disk import SlowFileSystem
from tests.replica.world import NODE, T0, T1, Told, World, leading
from tests.storage.world import batch, offsets

OTHER = 2
SYNC_LOG = Point("sync", "*.log", "ottla.storage.log.flusher.flush_now")


class Durable:
    """A broker whose topic t has flush.messages=1, with threads that run when told."""

    def __init__(self, *dirs: str) -> None:
        self.fs = FaultyFileSystem(RealFileSystem())
        self.runtime = SimulatedRuntime(queued=True)
        self.world = World(*dirs, fs=self.fs, runtime=self.runtime)
        self.world.make_topic("t", leading(), leading(), flush_messages=1)
        self.runtime.run_pending()
        self.fs.seen.clear()

    @property
    def syncs(self) -> int:
        """How often the log of a segment was brought to disk."""
        seen = self.fs.seen.items()
        return sum(count for point, count in seen if (point.kind, point.target) == ("sync", "*.log"))


@pytest.fixture
def durable(tmp_path: Path) -> Durable:
    return Durable(str(tmp_path / "data"))


@pytest.mark.parametrize("acks", [-1, 1])
def test_nothing_is_answered_before_it_is_on_disk(durable: Durable, acks: int) -> None:
    world = durable.world
    told = world.append(acks=acks)
    assert told.is_waiting
    assert durable.syncs == 0
    durable.runtime.run_pending()
    assert (told.only.error_code, told.only.base_offset) == (0, 0)
    assert durable.syncs == 1
    assert (world.log().recovery_point, world.log().high_watermark) == (1, 1)


def test_one_sync_serves_all_appends_that_wait(durable: Durable) -> None:
    world = durable.world
    first = world.append()
    others = [world.append(acks=acks) for acks in (1, -1, 0, 1, -1)]
    durable.runtime.run_pending()
    assert [told.only.base_offset for told in (first, *others)] == [0, 1, 2, 3, 4, 5]
    assert durable.syncs == 2, "one for the first, one for all that came while that was under way"


@pytest.mark.parametrize("acks", [-1, 1])
def test_with_a_larger_number_the_append_that_reaches_it_waits_for_the_disk(
    durable: Durable, acks: int
) -> None:
    world = durable.world
    world.make_topic("t", leading(), leading(), flush_messages=5)
    world.append(count=5)
    durable.runtime.run_pending()
    durable.fs.seen.clear()
    early = [world.append(count=2, acks=acks), world.append(count=2, acks=acks)]
    durable.runtime.run_pending()
    assert [told.only.error_code for told in early] == [0, 0]
    assert durable.syncs == 0
    durable.fs.fault = Fault(SYNC_LOG, error=errno.EIO)
    told = world.append(acks=acks)
    durable.runtime.run_pending()
    assert told.only.error_code == ErrorCode.KAFKA_STORAGE_ERROR, "it was not answered before the flush"


def test_with_a_larger_number_records_are_counted_from_the_last_flush(durable: Durable) -> None:
    world = durable.world
    world.make_topic("t", leading(), leading(), flush_messages=5)
    durable.runtime.run_pending()
    points = []
    for _ in range(6):
        told = world.append(count=2)
        durable.runtime.run_pending()
        assert told.only.error_code == 0
        points.append(world.log().recovery_point)
    assert points == [0, 0, 6, 6, 6, 12]
    assert world.log().high_watermark == 12


def test_with_a_larger_number_records_are_read_before_they_are_flushed(durable: Durable) -> None:
    """As in Kafka: only the append that asks for a flush waits for one."""
    world = durable.world
    world.make_topic("t", leading(), leading(), flush_messages=5)
    durable.runtime.run_pending()
    world.append(count=2)
    durable.runtime.run_pending()
    for isolation in (Isolation.HIGH_WATERMARK, Isolation.COMMITTED):
        fetched = world.fetch(FetchEntry(T0, None, 0, 1000), isolation=isolation)
        durable.runtime.run_pending()
        assert fetched.only.size_bytes > 0, isolation
    assert world.log().recovery_point == 0


def test_each_log_of_a_group_is_synced_once(durable: Durable) -> None:
    world = durable.world
    world.append(T0)
    told = [world.append(T0, T1) for _ in range(3)]
    durable.runtime.run_pending()
    assert [[result.base_offset for result in t.results or []] for t in told] == [[1, 0], [2, 1], [3, 2]]
    assert durable.syncs == 3


def test_a_failed_sync_is_told_to_all_who_wait_and_takes_the_directory_offline(durable: Durable) -> None:
    world = durable.world
    world.append()
    durable.runtime.run_pending()
    durable.fs.fault = Fault(SYNC_LOG, error=errno.EIO)
    told = [world.append(), world.append(acks=-1)]
    durable.runtime.run_pending()
    later = world.append()
    durable.runtime.run_pending()
    codes = {result.only.error_code for result in (*told, later)}
    assert codes == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert world.log().high_watermark == 1
    assert world.log().dir.offline


def test_the_high_watermark_never_passes_what_is_flushed(durable: Durable) -> None:
    world = durable.world
    world.make_topic("t", leading(isr=(NODE, OTHER)), leading(), flush_messages=1)
    told = world.append(acks=-1)
    # The follower has it before this broker's own disk has.
    world.fetch(FetchEntry(T0, None, 1, 1000), replica_id=OTHER, isolation=Isolation.LOG_END)
    assert world.log().high_watermark == 0
    durable.runtime.run_pending()
    assert (told.only.error_code, world.log().high_watermark) == (0, 1)


def test_a_consumer_waits_for_the_flush_and_is_woken_by_it(durable: Durable) -> None:
    world = durable.world
    fetched = world.fetch(FetchEntry(T0, None, 0, 1000), max_wait_ms=500)
    world.append()
    assert fetched.is_waiting
    durable.runtime.run_pending()
    assert fetched.only.size_bytes > 0
    again = world.fetch(FetchEntry(T0, None, 0, 1000), FetchEntry(T1, None, 0, 1000))
    assert again.is_waiting, "the log belongs to its lane, which reads it"
    durable.runtime.run_pending()
    assert [result.size_bytes > 0 for result in again.results or []] == [True, False]


def test_errors_of_a_lent_log_are_told_as_of_any_other(durable: Durable) -> None:
    world = durable.world
    told: list[Told[Any]] = [
        world.append(records=b"nonsense"),
        world.fetch(FetchEntry(T0, None, 9, 1000)),
    ]
    durable.runtime.run_pending()
    codes = [told[0].only.error_code, told[1].only.error_code]
    assert codes == [ErrorCode.INVALID_RECORD, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_the_buffer_of_a_request_may_be_used_again_at_once(durable: Durable) -> None:

    buffer = bytearray(batch(value=b"right"))
    told: Told[Any] = Told()
    durable.world.replicas.append(acks=1, timeout_ms=0, entries=[(T0, memoryview(buffer))], done=told)
    buffer[:] = bytes(len(buffer))
    durable.runtime.run_pending()
    assert b"right" in durable.world.log().segments.active.file.pread(1000, 0)


def test_a_log_goes_to_its_lane_and_back_when_the_setting_changes(durable: Durable) -> None:
    world = durable.world
    told = [world.append()]
    world.make_topic("t", leading(), leading())
    told.append(world.append())
    assert told[1].is_waiting, "in order behind what is queued"
    durable.runtime.run_pending()
    told.append(world.append())
    world.make_topic("t", leading(), leading(), flush_messages=1)
    told.append(world.append())
    assert told[3].is_waiting
    durable.runtime.run_pending()
    assert [t.only.base_offset for t in told] == [0, 1, 2, 3]
    assert world.log().recovery_point == 4


def test_a_topic_deleted_with_appends_under_way_answers_them(durable: Durable) -> None:
    world = durable.world
    told = [world.append(), world.append()]
    world.drop_topic()
    durable.runtime.run_pending()
    assert {t.only.error_code for t in told} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_many_logs_on_a_lane_keep_few_files_open(durable: Durable) -> None:
    world = durable.world
    keys = [TopicPartition("many", number) for number in range(160)]
    world.make_topic("many", *[leading()] * 160, flush_messages=1)
    durable.runtime.run_pending()
    for _ in range(3):
        world.append(*keys, value=b"a" * 5000)
    durable.runtime.run_pending()
    indexes = [path for path in Path("/proc/self/fd").iterdir() if _target(path).endswith("index")]
    assert len(indexes) <= 256
    world.logs.abandon()


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except FileNotFoundError:
        return ""


# -- with real threads


def test_while_one_disk_hangs_the_other_and_the_loop_go_on(tmp_path: Path) -> None:
    asyncio.run(_one_disk_hangs(tmp_path), debug=False)


async def _one_disk_hangs(tmp_path: Path) -> None:
    fs = SlowFileSystem(RealFileSystem())
    runtime = AsyncRuntime(asyncio.get_running_loop())
    world = World(str(tmp_path / "a"), str(tmp_path / "b"), fs=fs, runtime=runtime)
    world.make_topic("durable", leading(), leading(), flush_messages=1)
    world.make_topic("t", leading(), leading())
    await _ready(world)
    slow, quick = (TopicPartition("durable", number) for number in (0, 1))
    plain = next(key for key in (T0, T1) if world.log(key).dir is world.log(quick).dir)
    assert world.log(slow).dir is not world.log(quick).dir
    fs.hold(world.log(slow).dir.path)
    hanging = world.append(slow)
    reading = world.fetch(FetchEntry(slow, None, 0, 1000), max_wait_ms=60_000)
    assert await asyncio.to_thread(fs.wait_until_held)
    for number in range(5):
        answered = world.append(quick)
        await _until(answered)
        assert answered.only.base_offset == number
        assert world.append(plain).only.base_offset == number
        assert world.fetch(FetchEntry(plain, None, number, 1000)).only.size_bytes > 0
    assert hanging.is_waiting
    assert reading.is_waiting
    fs.release()
    await _until(hanging)
    await _until(reading)
    assert hanging.only.error_code == 0
    assert reading.only.size_bytes > 0
    await asyncio.to_thread(runtime.close)
    world.logs.abandon()


async def _ready(world: World) -> None:
    ready = asyncio.Event()
    world.replicas.when_ready(ready.set)
    await ready.wait()


def _one(told: Told[Any]) -> Callable[[Any], None]:
    return lambda found: told([found])


async def _until(told: Told[Any]) -> None:
    answered = asyncio.Event()
    told.then = answered.set
    if told.is_waiting:
        await answered.wait()


# -- power cuts


def test_what_was_acknowledged_survives_a_power_cut_at_any_moment() -> None:
    disk = SimulatedDisk()
    runtime = SimulatedRuntime(queued=True)
    world = World("/data", fs=disk, runtime=runtime)
    topic = world.make_topic("t", leading(), flush_messages=1, internal_segment_bytes=700)
    runtime.run_pending()
    history = disk.record()
    told: list[Told[AppendResult]] = []
    for number in range(40):
        told.append(world.append(value=b"%d" % number * 20, acks=(-1, 1)[number % 2]))
        if number % 3 == 2:
            runtime.run_one()
        history.mark(sum(not answer.is_waiting for answer in told))
    assert len(world.log().segments) > 3
    for state in crash_states(history, points=range(0, len(history.operations), 9), samples=1):
        known = state.label or 0
        assert isinstance(known, int)
        after = World("/data", fs=state.disk(), topic=topic, topic_config={"flush_messages": 1})
        assert offsets(after.log())[:known] == list(range(known)), state.describe()
        assert after.log().high_watermark >= known, state.describe()


class WatchedPool(HandlePool):
    """Says which threads have used it: to open one thing may close another, which must not be in use elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def opened(self, holder: Releasable) -> None:
        self.threads.add(threading.get_ident())
        super().opened(holder)


def test_logs_come_and_go_between_threads_but_pools_of_files_do_not(tmp_path: Path) -> None:
    asyncio.run(_come_and_go(tmp_path))


async def _come_and_go(tmp_path: Path) -> None:
    runtime = AsyncRuntime(asyncio.get_running_loop())
    world = World(str(tmp_path), runtime=runtime)
    pools = WatchedPool(), WatchedPool()
    world.logs.handles, world.replicas._lanes.of(world.logs.online_dirs[0]).handles = pools
    world.make_topic("durable", *[leading()] * 3, flush_messages=1, index_interval_bytes=0)
    world.make_topic("t", *[leading()] * 3, index_interval_bytes=0)
    await _ready(world)
    told: list[Told[Any]] = []
    for number in range(30):
        plain, durable = TopicPartition("t", number % 3), TopicPartition("durable", number % 3)
        looked_up: Told[Any] = Told()
        told += [world.append(durable), world.append(plain), looked_up]
        world.replicas.list_offset(plain, START_MS, Isolation.HIGH_WATERMARK, -1, _one(looked_up))
        told.append(world.fetch(FetchEntry(plain, None, 0, 1000)))
        for answer in told[-4:]:
            await _until(answer)
    assert {answer.only.error_code for answer in told} == {0}
    assert [len(pool.threads) for pool in pools] == [1, 1]
    assert pools[0].threads == {threading.get_ident()} != pools[1].threads
    await asyncio.to_thread(runtime.close)
    world.logs.abandon()
