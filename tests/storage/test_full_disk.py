"""A full disk: what was acknowledged stays, what does not fit leaves no trace, and when there is room it goes on."""

from __future__ import annotations

import errno
import logging
import uuid
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config import BrokerConfig, LogConfig
from ottla.errors import DiskFullError, LogDirOfflineError
from ottla.names import TopicPartition
from ottla.storage import checkpoint
from ottla.storage.fs import FileSystem
from ottla.storage.log import retention
from ottla.storage.log.log import Log
from ottla.storage.log.validation import Origin, validate
from ottla.storage.log_manager import LogManager
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.disks.small_disk import SmallFileSystem
from tests.storage.steps import truncate
from tests.storage.world import World, append, batch, end_transaction, marker, offsets, read_all

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
KIB = 1024
A_WHILE_MS = 2_000  # until the disk is asked again


def on_small_disk(capacity_bytes: int) -> tuple[World, SmallFileSystem]:
    runtime = SimulatedRuntime()
    inner = SimulatedDisk(now_ms=runtime.now_ms)
    inner.make_dir("/data")
    fs = SmallFileSystem(inner, capacity_bytes)
    return World(fs, "/data", runtime), fs


def fill(log: Log, size: int = 100) -> int:
    """Append until nothing more fits; how many were taken."""
    taken = 0
    with suppress(DiskFullError):
        while True:
            append(log, value=bytes(size))
            taken += 1
    return taken


def test_what_does_not_fit_is_refused_and_leaves_nothing_behind() -> None:
    world, fs = on_small_disk(4 * KIB)
    log = world.load()
    taken = fill(log)
    assert taken > 10
    assert not world.dir.offline
    assert log.end_offset == taken
    assert offsets(log) == list(range(taken))
    assert fs.size(f"{world.path}/{0:020d}.log") == log.size_bytes, "a part of the batch is still there"
    log.abandon()
    again = World(fs, world.root, world.runtime).load()
    assert offsets(again) == list(range(taken))


def test_the_disk_is_not_asked_again_for_every_append_and_the_log_says_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, fs = on_small_disk(4 * KIB)
    log = world.load()
    fill(log)
    refused = fs.refusals
    for _ in range(50):
        with pytest.raises(DiskFullError, match="ENOSPC"):
            append(log)
    assert fs.refusals == refused
    (line,) = [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    for part in ("/data", "ENOSPC", f"{world.path}/{0:020d}.log", "appending to t-0", "bytes free"):
        assert part in line


def test_a_batch_that_was_checked_elsewhere_is_refused_without_asking_the_disk() -> None:
    world, fs = on_small_disk(4 * KIB)
    log = world.load()
    taken = fill(log)
    checked = validate(batch(), 0, 0, log.config, world.runtime.now_ms())
    refused = fs.refusals
    with pytest.raises(DiskFullError, match="ENOSPC"):
        log.append_validated(checked, 0)
    assert fs.refusals == refused
    fs.capacity_bytes *= 2
    world.runtime.advance(A_WHILE_MS)
    assert log.append_validated(checked, 0).first_offset == taken


def test_with_room_again_the_log_goes_on_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    world, fs = on_small_disk(4 * KIB)
    log = world.load()
    taken = fill(log)
    world.runtime.advance(A_WHILE_MS)
    with pytest.raises(DiskFullError):
        append(log)
    fs.capacity_bytes *= 2
    world.runtime.advance(A_WHILE_MS)
    assert append(log).first_offset == taken
    assert "takes records again" in caplog.text
    assert offsets(log) == list(range(taken + 1))
    log.abandon()
    assert offsets(World(fs, world.root, world.runtime).load()) == list(range(taken + 1))


def test_what_a_producer_sent_on_a_full_disk_it_may_send_again() -> None:
    world, fs = on_small_disk(KIB)
    log = world.load()
    append(log, base_sequence=0, **PRODUCER)
    with pytest.raises(DiskFullError):
        append(log, value=bytes(2 * KIB), base_sequence=1, **PRODUCER)
    fs.capacity_bytes = 100 * KIB
    world.runtime.advance(A_WHILE_MS)
    assert append(log, value=bytes(2 * KIB), base_sequence=1, **PRODUCER).first_offset == 1
    assert append(log, value=bytes(2 * KIB), base_sequence=1, **PRODUCER).is_duplicate


def test_where_the_disk_cannot_say_why_it_is_tried_less_and_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runtime = SimulatedRuntime()
    inner = SimulatedDisk(now_ms=runtime.now_ms)
    inner.make_dir("/data")
    world = World(inner, "/data", runtime)
    log = world.load()
    for _ in range(600):  # ten minutes of a quota that is used up
        with suppress(DiskFullError):
            append(log)
            world.dir.refuse(OSError(errno.EDQUOT, "Disk quota exceeded"), "appending to t-0")
        runtime.advance(1000)
    assert len([record for record in caplog.records if "is full" in record.message]) < 20


# -- what else is written


def test_a_roll_for_which_there_is_no_room_leaves_the_old_segment_in_use() -> None:
    world, fs = on_small_disk(100 * KIB)
    log = world.load()
    append(log, 3)
    fs.capacity_bytes = fs.used_bytes
    with pytest.raises(DiskFullError):
        log.roll()
    assert not world.dir.offline
    assert [segment.base_offset for segment in log.segments] == [0]
    fs.capacity_bytes = 100 * KIB
    world.runtime.advance(A_WHILE_MS)
    assert append(log).first_offset == 3
    log.roll()
    assert append(log).first_offset == 4
    assert offsets(log) == [0, 1, 2, 3, 4]
    log.close()
    assert offsets(World(fs, world.root, world.runtime).load(clean=True)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("preallocate", [False, True])
@pytest.mark.parametrize("is_empty", [False, True])
def test_at_whatever_point_a_roll_fails_it_can_be_done_again(is_empty: bool, preallocate: bool) -> None:
    def begin(fault: Fault | None) -> tuple[World, FaultyFileSystem, Log]:
        runtime = SimulatedRuntime()
        disk = SimulatedDisk(now_ms=runtime.now_ms)
        disk.make_dir("/data")
        fs = FaultyFileSystem(disk)
        world = World(fs, "/data", runtime)
        log = world.load(preallocate=preallocate)
        append(log, 2, base_sequence=0, **PRODUCER)
        if is_empty:
            log.roll()
        fs.seen.clear()
        fs.fault = fault
        return world, fs, log

    _, fs, log = begin(None)
    log.roll()
    points = [
        point for point in fs.seen if point.kind in ("create", "open", "pwrite", "truncate", "allocate")
    ]
    points = [point for point in points if not point.caller.endswith("_sync_file")]
    assert points
    for point in points:
        world, fs, log = begin(Fault(point, 0, errno.ENOSPC, written_bytes=1))
        with suppress(DiskFullError):
            log.roll()
        assert fs.fired, point
        assert not world.dir.offline, point
        world.runtime.advance(A_WHILE_MS)
        assert append(log, base_sequence=2, **PRODUCER).first_offset == 2
        log.roll()
        append(log, base_sequence=3, **PRODUCER)
        assert offsets(log) == [0, 1, 2, 3], point
        log.close()
        assert offsets(World(fs, world.root, world.runtime).load(clean=True)) == [0, 1, 2, 3], point


def test_a_new_leader_epoch_that_cannot_be_written_down_is_not_begun() -> None:
    world, fs = on_small_disk(100 * KIB)
    log = world.load()
    append(log, epoch=1)
    fs.capacity_bytes = fs.used_bytes
    with pytest.raises(DiskFullError):
        append(log, epoch=2)
    assert log.epochs.entries == [(1, 0)]
    fs.capacity_bytes = 100 * KIB
    world.runtime.advance(A_WHILE_MS)
    append(log, epoch=2)
    assert log.epochs.entries == [(1, 0), (2, 1)]


def test_an_abort_whose_index_entry_finds_no_room_is_known_all_the_same() -> None:
    world, fs = on_small_disk(100 * KIB)
    log = world.load()
    append(log, base_sequence=0, transactional=True, **PRODUCER)
    fs.capacity_bytes = fs.used_bytes + len(marker(7)) + 10
    end_transaction(log, 7)
    assert fs.refusals == 1
    assert log.segments.active.txn_index.entries == [(7, 0, 1, 2)]
    fs.capacity_bytes = 100 * KIB
    log.roll()
    assert log.segments.first.txn_index.entries == [(7, 0, 1, 2)]
    log.close()
    log = World(fs, world.root, world.runtime).load(clean=True)
    assert log.segments.first.txn_index.entries == [(7, 0, 1, 2)]


def test_an_index_that_finds_no_room_has_a_gap_and_lookups_are_right() -> None:
    world, fs = on_small_disk(100 * KIB)
    log = world.load(index_interval_bytes=1, internal_segment_bytes=100_000)
    for _ in range(5):
        append(log)
    assert offsets(log) == list(range(5))
    sizes = fs.used_of(f"{world.path}/{0:020d}.log")
    fs.capacity_bytes = (
        fs.used_bytes + sizes
    )  # for the log, and nothing of what its indexes would like to have
    for _ in range(5):
        append(log)
    fs.capacity_bytes = fs.used_bytes
    assert [record.offset for record in read_all(log)] == list(range(10))
    assert not world.dir.offline
    fs.capacity_bytes = 100 * KIB
    world.runtime.advance(A_WHILE_MS)
    append(log)
    log.roll()
    assert offsets(log) == list(range(11))


def test_records_can_be_deleted_on_a_full_disk_and_retention_makes_room() -> None:
    world, _ = on_small_disk(16 * KIB)
    log = world.load(
        internal_segment_bytes=2 * KIB, retention_bytes=4 * KIB, retention_ms=-1, file_delete_delay_ms=0
    )
    taken = fill(log)
    log.raise_high_watermark(log.end_offset)
    log.raise_start_offset(5)
    assert retention.apply(log, world.runtime.now_ms())
    log.delete_due_files()
    world.runtime.advance(A_WHILE_MS)
    assert append(log).first_offset == taken


def test_the_log_start_is_written_down_when_retention_has_made_room() -> None:
    """Else a start after a kill would take what retention removed for lost."""
    world, fs = on_small_disk(12 * KIB)
    log = world.load(
        internal_segment_bytes=2 * KIB, retention_bytes=4 * KIB, retention_ms=-1, file_delete_delay_ms=0
    )
    fill(log)
    log.raise_high_watermark(log.end_offset)
    fs.capacity_bytes = fs.used_bytes
    assert retention.apply(log, world.runtime.now_ms())
    log.delete_due_files(all_of_them=True)
    retention.apply(log, world.runtime.now_ms())
    first = checkpoint.read_epochs(world.fs, f"{world.path}/leader-epoch-checkpoint")[0][1]
    assert first == log.start_offset > 0


def test_retention_goes_on_where_even_the_active_segment_is_due_and_there_is_no_room_for_another() -> None:
    world, fs = on_small_disk(16 * KIB)
    log = world.load(internal_segment_bytes=2 * KIB, retention_ms=1, file_delete_delay_ms=0)
    fill(log)
    log.raise_high_watermark(log.end_offset)
    fs.capacity_bytes = fs.used_bytes
    world.runtime.advance(A_WHILE_MS)
    assert retention.apply(log, world.runtime.now_ms())
    assert len(log.segments) == 1
    log.delete_due_files()
    assert retention.apply(log, world.runtime.now_ms())
    assert log.size_bytes == 0


def test_a_sync_that_finds_no_room_is_final(world: World) -> None:
    """With delayed allocation the pages are lost by then."""
    point = Point("sync", "*.log", "ottla.storage.log.flusher.flush_now")
    world.fs = world.dir.fs = FaultyFileSystem(world.fs, Fault(point, 0, errno.ENOSPC))
    log = world.load(clean=True)
    append(log)
    log.flush()
    append(log)
    with suppress(Exception):
        log.flush()
    with pytest.raises(LogDirOfflineError, match=r"ENOSPC .*\.log.*flushing"):
        append(log)


# -- a whole directory


def manager_on(fs: FileSystem, runtime: SimulatedRuntime, **config: Any) -> LogManager:
    logs = LogManager(
        fs, runtime, BrokerConfig(log_dirs=("/data",)), defaults=LogConfig(segment_index_bytes=4096, **config)
    )
    logs.open()
    return logs


def test_checkpoints_are_written_once_there_is_room_and_a_stop_without_any_is_not_clean() -> None:
    runtime = SimulatedRuntime()
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    disk.make_dir("/data")
    fs = SmallFileSystem(disk, 100 * KIB)
    logs = manager_on(fs, runtime)
    key = TopicPartition("t", 0)
    log = logs.get_or_create(key)
    append(log, 5)
    log.flush()
    fs.capacity_bytes = fs.used_bytes
    logs.checkpoint()
    assert logs.full_dirs
    assert disk.read_bytes("/data/recovery-point-offset-checkpoint").decode() == "0\n0\n"
    with pytest.raises(DiskFullError):
        truncate(logs, key, 2)
    assert log.end_offset == 5
    fs.capacity_bytes = 100 * KIB
    runtime.advance(A_WHILE_MS)
    logs.checkpoint()
    assert disk.read_bytes("/data/recovery-point-offset-checkpoint").decode() == "0\n1\nt 0 2\n"
    append(log)
    fs.capacity_bytes = fs.used_bytes
    logs.close()
    assert not disk.exists("/data/.kafka_cleanshutdown")
    fs.capacity_bytes = 100 * KIB
    again = manager_on(fs, runtime)
    assert not again.was_clean
    assert offsets(again.logs[key]) == list(range(6))


def test_a_log_that_finds_no_room_is_made_later() -> None:
    runtime = SimulatedRuntime()
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    disk.make_dir("/data")
    fs = SmallFileSystem(disk, 100 * KIB)
    logs = manager_on(fs, runtime)
    fs.capacity_bytes = fs.used_bytes
    topic_id = uuid.UUID(int=5, version=4)
    with pytest.raises(DiskFullError):
        logs.get_or_create(TopicPartition("t", 0), topic_id)
    fs.capacity_bytes = 100 * KIB
    runtime.advance(A_WHILE_MS)
    append(logs.get_or_create(TopicPartition("t", 0), topic_id))
    assert logs.logs[TopicPartition("t", 0)].topic_id == topic_id


# -- any story


def steps() -> st.SearchStrategy[list[tuple[str, int]]]:
    names = ["append", "append", "append", "transaction", "roll", "read", "flush", "squeeze", "room", "epoch"]
    return st.lists(st.tuples(st.sampled_from(names), st.integers(1, 900)), min_size=5, max_size=40)


class Story:
    """A log on a disk that is full now and then, beside what it has acknowledged."""

    def __init__(self) -> None:
        self.world, self.fs = on_small_disk(6 * KIB)
        self.log = self.load(self.world)
        self.acknowledged: list[int] = []  # the size of each record's value
        self.sequence = 0
        self.epoch = 0

    @staticmethod
    def load(world: World) -> Log:
        return world.load(internal_segment_bytes=2 * KIB, index_interval_bytes=200)

    def step(self, name: str, number: int) -> None:
        with suppress(DiskFullError):
            if name == "append":
                append(self.log, value=bytes(number), epoch=self.epoch)
                self.acknowledged.append(number)
            elif name == "transaction":
                append(
                    self.log, value=bytes(number), epoch=self.epoch, base_sequence=self.sequence,
                    transactional=True, **PRODUCER,
                )  # fmt: skip
                self.acknowledged.append(number)
                self.sequence += 1
                end = marker(7, commit=number % 2 == 0)
                self.log.append_as_leader(end, self.epoch, Origin.COORDINATOR)
                self.acknowledged.append(-1)
            elif name == "roll":
                self.log.roll()
            elif name == "read":
                self.check(self.log)
            elif name == "flush":
                self.log.flush()
            elif name == "epoch":
                self.epoch += 1
            elif name == "squeeze":
                self.fs.capacity_bytes = self.fs.used_bytes + number % 50
            elif name == "room":
                self.fs.capacity_bytes = self.fs.used_bytes + 10 * number
                self.world.runtime.advance(A_WHILE_MS)
        assert not self.world.dir.offline

    def check(self, log: Log) -> None:
        found = [len(record.value or b"") if record.key == b"key" else -1 for record in read_all(log)]
        assert found == self.acknowledged


@settings(max_examples=150, deadline=None)
@given(steps())
def test_whenever_the_disk_is_full_the_log_holds_what_it_acknowledged_and_nothing_else(
    story: list[tuple[str, int]],
) -> None:
    told = Story()
    for name, number in story:
        told.step(name, number)
    told.check(told.log)
    told.fs.capacity_bytes = 1 << 20
    told.world.runtime.advance(A_WHILE_MS)
    told.step("append", 10)
    assert told.log.end_offset == len(told.acknowledged)
    told.log.abandon()
    killed = World(told.fs, told.world.root, told.world.runtime)
    told.check(told.load(killed))
