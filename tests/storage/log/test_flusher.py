"""Group commit: one sync for many, a recovery point that only success moves, failures that are final."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from ottla.errors import LogDirOfflineError, StorageError
from ottla.storage.log import reader as log_reader
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import no_point_on_disk
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import World, append, end_transaction, offsets

SYNC = Point("sync", "*.log", "ottla.storage.log.flusher._sync_file")
SYNC_DIR = Point("sync_dir", "t-0", "ottla.storage.log.flusher.work")


class Waiters:
    """Remembers what each waiter was told."""

    def __init__(self) -> None:
        self.told: dict[str, BaseException | None] = {}

    def __call__(self, name: str) -> Callable[[BaseException | None], None]:
        def done(error: BaseException | None) -> None:
            assert name not in self.told, f"{name} was told twice"
            self.told[name] = error

        return done


@pytest.fixture
def waiters() -> Waiters:
    return Waiters()


@pytest.fixture
def queued() -> SimulatedRuntime:
    return SimulatedRuntime(queued=True)


@pytest.fixture
def world(queued: SimulatedRuntime) -> World:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    return World(disk, "/data", queued)


def failing(world: World, point: Point, nth: int = 0) -> FaultyFileSystem:
    """From now on the world's disk fails once at `point`, counted from now on."""
    faulty = FaultyFileSystem(world.fs, Fault(point, nth, errno.EIO))
    world.fs = world.dir.fs = faulty
    return faulty


def syncs(world: World) -> Callable[[], int]:
    faulty = FaultyFileSystem(world.fs)
    world.fs = world.dir.fs = faulty
    return lambda: faulty.seen[SYNC]


def test_nobody_is_told_before_the_sync_is_done(world: World, waiters: Waiters) -> None:
    log = world.load()
    append(log, 3)
    log.when_flushed(3, waiters("a"))
    assert waiters.told == {}
    assert log.recovery_point == 0
    world.runtime.run_pending()
    assert waiters.told == {"a": None}
    assert log.recovery_point == 3


def test_what_is_on_disk_already_needs_no_sync(world: World, waiters: Waiters) -> None:
    log = world.load()
    append(log)
    log.flush()
    log.when_flushed(1, waiters("a"))
    assert waiters.told == {"a": None}
    assert world.runtime.run_pending() == 0


def test_waiters_of_appends_during_a_sync_share_the_next_one(world: World, waiters: Waiters) -> None:
    count = syncs(world)
    log = world.load()
    append(log)
    log.when_flushed(1, waiters("first"))
    before = count()
    for number in range(5):
        append(log)
        log.when_flushed(number + 2, waiters(f"{number}"))
    world.runtime.run_pending()
    assert set(waiters.told.values()) == {None}
    assert len(waiters.told) == 6
    assert count() - before == 2
    assert log.recovery_point == 6


def test_a_failed_sync_tells_every_waiter_and_nothing_is_acked_later(world: World, waiters: Waiters) -> None:
    log = world.load()
    failing(world, SYNC)
    append(log)
    append(log)
    log.when_flushed(1, waiters("a"))
    log.when_flushed(2, waiters("b"))
    world.runtime.run_pending()
    assert isinstance(waiters.told["a"], StorageError)
    assert isinstance(waiters.told["b"], StorageError)
    assert world.dir.offline
    assert log.recovery_point == 0
    # The operating system would say yes to the next sync: the pages are gone.
    log.when_flushed(2, waiters("late"))
    world.runtime.run_pending()
    assert isinstance(waiters.told["late"], LogDirOfflineError)
    for use in (
        lambda: append(log),
        log.flush,
        log.roll,
        lambda: truncation.truncate_to(log, 0, no_point_on_disk),
        log.close,
    ):
        with pytest.raises(LogDirOfflineError):
            use()


def test_a_failure_elsewhere_in_the_directory_is_believed_more_than_a_sync(
    world: World, waiters: Waiters
) -> None:
    log = world.load()
    append(log)
    log.when_flushed(1, waiters("a"))
    world.dir.fail(OSError(errno.EIO, "other log"), "flushing")
    world.runtime.run_pending()
    assert isinstance(waiters.told["a"], LogDirOfflineError)
    assert log.recovery_point == 0


def test_a_failed_flush_on_this_thread_raises_and_tells(world: World, waiters: Waiters) -> None:
    failing(world, Point("sync", "*.log", "ottla.storage.log.flusher.flush_now"))
    log = world.load()
    log.flush()  # its names
    append(log)
    log.when_flushed(1, waiters("a"))
    with pytest.raises(StorageError):
        log.flush()
    assert isinstance(waiters.told["a"], StorageError)
    world.runtime.run_pending()
    assert log.recovery_point == 0


def test_the_name_of_a_new_segment_must_be_durable_too(world: World, waiters: Waiters) -> None:
    log = world.load()
    append(log)
    failing(world, SYNC_DIR)
    log.roll()
    append(log)
    log.when_flushed(2, waiters("a"))
    world.runtime.run_pending()
    assert isinstance(waiters.told["a"], StorageError)
    assert world.dir.offline


def test_a_flush_does_not_rely_on_a_sync_of_names_that_is_only_under_way(world: World) -> None:
    log = world.load()
    disk = world.fs
    assert isinstance(disk, SimulatedDisk)
    append(log)
    log.flush()
    history = disk.record()
    log.roll()  # queues a sync
    append(log)
    log.flush()  # must not leave the new name to it
    for state in crash_states(history, points=[len(history.operations)], samples=4):
        after = World(state.disk(), "/data", SimulatedRuntime())
        assert offsets(after.load(recovery_point=2)) == [0, 1], state.describe()


@pytest.mark.parametrize("wanted", [2, 3])
def test_records_that_are_cut_before_their_sync_are_never_acked(
    world: World, waiters: Waiters, wanted: int
) -> None:
    log = world.load()
    append(log)
    log.when_flushed(1, waiters("kept"))
    append(log)
    append(log)
    log.when_flushed(wanted, waiters("lost"))
    truncation.truncate_to(log, 1, no_point_on_disk)
    append(log)
    append(log)
    world.runtime.run_pending()
    assert isinstance(waiters.told["lost"], StorageError)
    assert waiters.told["kept"] is None
    assert not world.dir.offline


def test_a_sync_begun_before_a_cut_says_nothing_about_the_log_after_it(
    world: World, waiters: Waiters
) -> None:
    log = world.load()
    append(log, 5)
    log.flusher.request()
    truncation.truncate_to(log, 0, no_point_on_disk)
    append(log, 2)
    world.runtime.run_pending()
    assert log.recovery_point == 0
    log.when_flushed(2, waiters("a"))
    world.runtime.run_pending()
    assert waiters.told == {"a": None}
    assert log.recovery_point == 2


def test_the_recovery_point_never_lies_past_the_end_of_a_log_cut_inside_a_batch(
    world: World, waiters: Waiters
) -> None:
    log = world.load()
    append(log, 10)
    log.flush()
    truncation.truncate_to(log, 5, no_point_on_disk)
    assert log.end_offset == 0
    assert log.recovery_point == 0
    append(log, 4)
    log.when_flushed(4, waiters("a"))
    assert waiters.told == {}


def test_beginning_anew_moves_the_recovery_point_to_the_new_start(world: World, waiters: Waiters) -> None:
    log = world.load()
    append(log, 100)
    log.when_flushed(100, waiters("lost"))
    truncation.truncate_fully_and_start_at(log, 10, no_point_on_disk)
    world.runtime.run_pending()
    assert log.recovery_point == 10
    assert isinstance(waiters.told["lost"], StorageError)


def test_deleting_or_closing_a_log_during_a_sync_does_no_harm(world: World, waiters: Waiters) -> None:
    log = world.load()
    append(log)
    log.roll()
    log.when_flushed(1, waiters("a"))
    log.abandon()
    world.fs.rename(world.path, f"{world.root}/gone")
    world.runtime.run_pending()
    assert not world.dir.offline
    assert isinstance(waiters.told["a"], StorageError)


# -- flush.messages and flush.ms


def test_a_flush_is_asked_for_after_flush_messages_records(world: World) -> None:
    log = world.load(flush_messages=3)
    world.runtime.run_pending()
    append(log, 2)
    assert world.runtime.run_pending() == 0
    append(log)
    assert world.runtime.run_pending() == 1
    assert log.recovery_point == 3
    append(log, 2)
    assert world.runtime.run_pending() == 0
    append(log, 5)
    assert world.runtime.run_pending() == 1
    assert log.recovery_point == 10


def test_records_written_anew_after_a_cut_count_again(world: World) -> None:
    log = world.load(flush_messages=3)
    append(log, 5)
    world.runtime.run_pending()
    truncation.truncate_to(log, 0, no_point_on_disk)
    world.runtime.run_pending()
    append(log, 2)
    assert world.runtime.run_pending() == 0
    append(log)
    assert world.runtime.run_pending() == 1
    assert log.recovery_point == 3


def test_the_index_of_aborted_transactions_survives_a_power_cut_after_a_roll(world: World) -> None:
    disk = world.fs
    assert isinstance(disk, SimulatedDisk)
    log = world.load()
    history = disk.record()
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 1)
    log.flush()  # the log is on disk now, its indexes are not
    log.roll()
    world.runtime.run_pending()
    append(log)
    log.flush()
    for state in crash_states(history, points=[len(history.operations)], samples=4):
        after = World(state.disk(), "/data", SimulatedRuntime()).load(recovery_point=log.recovery_point)
        assert [txn[:3] for txn in log_reader.aborted_in(after, 0, 3)] == [(1, 0, 1)], state.describe()
        assert log_reader.find_timestamp(after, 0) is not None, state.describe()


def test_names_and_old_indexes_are_synced_after_a_roll_and_then_no_more(world: World) -> None:
    faulty = FaultyFileSystem(world.fs)
    world.fs = world.dir.fs = faulty
    log = world.load()
    append(log)
    world.runtime.run_pending()
    log.flush()

    def count(kind: str, target: str) -> int:
        return sum(
            n for point, n in faulty.seen.items() if point[:2] == (kind, target) and "flusher" in point.caller
        )

    names, indexes = count("sync_dir", "t-0"), count("sync", "*.index")
    append(log)
    log.flush()
    assert (count("sync_dir", "t-0"), count("sync", "*.index")) == (names, indexes)
    log.roll()
    world.runtime.run_pending()
    assert (count("sync_dir", "t-0"), count("sync", "*.index")) == (names + 1, indexes + 1)
    append(log)
    log.flush()
    indexes = count("sync", "*.index")
    append(log)
    log.flush()
    assert (count("sync_dir", "t-0"), count("sync", "*.index")) == (names + 1, indexes)


def test_a_roll_flushes_the_old_segment_in_the_background(world: World) -> None:
    log = world.load()
    append(log, 3)
    log.roll()
    assert log.recovery_point == 0
    world.runtime.run_pending()
    assert log.recovery_point == 3


def test_the_high_watermark_waits_for_the_disk_where_every_append_does(world: World) -> None:
    log = world.load(flush_messages=1)
    append(log, 3)
    assert not log.raise_high_watermark(3)
    assert log.high_watermark == 0
    world.runtime.run_pending()
    assert log.raise_high_watermark(3)
    append(log, 2)
    assert not log.raise_high_watermark(5)
    assert log.high_watermark <= log.recovery_point


def test_the_high_watermark_does_not_wait_elsewhere(world: World) -> None:
    log: Log = world.load()
    append(log, 3)
    assert log.raise_high_watermark(9)
    assert log.high_watermark == 3
    assert not log.raise_high_watermark(2)
    assert log.high_watermark == 3


def test_a_power_cut_never_takes_what_a_waiter_was_promised(world: World) -> None:
    disk = world.fs
    assert isinstance(disk, SimulatedDisk)
    log = world.load()
    promised = 0
    history = disk.record()

    def done(error: BaseException | None) -> None:
        nonlocal promised
        assert error is None
        promised = log.recovery_point
        history.mark(promised)

    for number in range(6):
        append(log, 2)
        log.when_flushed(log.end_offset, done)
        if number in (1, 4):
            log.roll()
        if number % 2:
            world.runtime.run_pending()
    assert promised == 12
    for state in crash_states(history, samples=2):
        survived = World(state.disk(), "/data", SimulatedRuntime()).load()
        kept = state.label or 0
        assert isinstance(kept, int)
        assert survived.end_offset >= kept, state.describe()
        assert offsets(survived) == list(range(survived.end_offset)), state.describe()
