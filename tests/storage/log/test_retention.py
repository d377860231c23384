"""Which segments retention takes out: by age, by size, below the log start; and when their files go."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from ottla.errors import OffsetOutOfRangeError, StorageError
from ottla.storage.layout import segment_file
from ottla.storage.log import retention
from ottla.storage.log.log import Log
from ottla.storage.producers import snapshots
from ottla.testing.runtime import START_MS
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import World, append, batch, offsets, read_all

SIZE = len(batch())


def filled(world: World, segments: int = 4, **config: Any) -> Log:
    """Segments of one batch each, a minute apart, all replicated; the last one is the active one."""
    log = world.load(**config)
    for number in range(segments):
        if number:
            log.roll()
        append(log, timestamp=START_MS + 60_000 * number)
    log.raise_high_watermark(log.end_offset)
    return log


def apply(log: Log, now_ms: int = START_MS) -> list[int]:
    return [segment.base_offset for segment in retention.apply(log, now_ms)]


# -- by time


@pytest.mark.parametrize(
    ("later_ms", "gone"), [(0, []), (60_000, []), (60_001, [0]), (120_001, [0, 1]), (180_001, [0, 1, 2])]
)
def test_segments_older_than_retention_ms_go(any_world: World, later_ms: int, gone: list[int]) -> None:
    log = filled(any_world, retention_ms=60_000)
    assert apply(log, START_MS + later_ms) == gone
    assert log.segments.bases == [base for base in range(4) if base not in gone]
    assert log.start_offset == len(gone)
    assert offsets(log) == list(range(len(gone), 4))


def test_the_age_of_a_segment_is_that_of_its_largest_timestamp(world: World) -> None:
    log = world.load(retention_ms=1000)
    append(log, timestamp=START_MS)
    append(log, timestamp=START_MS + 5000)
    append(log, timestamp=START_MS + 1)
    log.roll()
    append(log, timestamp=START_MS + 9000)
    log.raise_high_watermark(4)
    assert apply(log, START_MS + 6000) == []
    assert apply(log, START_MS + 6001) == [0]


def test_the_active_segment_is_rolled_when_even_it_is_due(any_world: World) -> None:
    log = filled(any_world, retention_ms=1000)
    assert apply(log, START_MS + 10_000_000) == [0, 1, 2, 3]
    assert log.segments.bases == [4]
    assert (log.start_offset, log.end_offset) == (4, 4)
    assert append(log).first_offset == 4
    log.close()
    assert offsets(any_world.load(clean=True)) == [4]


def test_an_empty_log_is_never_rolled_by_retention(world: World) -> None:
    log = world.load(retention_ms=1, retention_bytes=0)
    assert apply(log, START_MS + 10_000_000) == []
    log = filled(world, 2, retention_ms=1)
    apply(log, START_MS + 10_000_000)
    assert apply(log, START_MS + 20_000_000) == []


def test_records_without_timestamps_age_with_their_file(world: World) -> None:
    log = world.load(retention_ms=1000)
    append(log, timestamp=-1)
    log.roll()
    log.raise_high_watermark(1)
    assert apply(log, START_MS + 1000) == []
    assert apply(log, START_MS + 1001) == [0]


def test_records_from_the_future_stay(world: World) -> None:
    log = filled(world, 2, retention_ms=1000, message_timestamp_after_max_ms=2**62)
    log.roll()
    append(log, timestamp=START_MS + 10**10)
    assert 2 not in apply(log, START_MS + 10**9)


def test_a_retention_of_nothing_drops_what_is_a_millisecond_old(world: World) -> None:
    log = filled(world, 2, retention_ms=0)
    assert apply(log, START_MS) == []
    assert apply(log, START_MS + 1) == [0]


def test_no_limit_means_no_limit(world: World) -> None:
    log = filled(world, retention_ms=-1, retention_bytes=-1)
    assert apply(log, 2**62) == []


# -- by size


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        (4 * SIZE, []),
        (4 * SIZE - 1, []),
        (3 * SIZE, [0]),
        (2 * SIZE + 1, [0]),
        (SIZE, [0, 1, 2]),
        (0, [0, 1, 2, 3]),
    ],
)
def test_the_oldest_go_while_the_rest_is_still_larger_than_retention_bytes(
    any_world: World, limit: int, gone: list[int]
) -> None:
    log = filled(any_world, retention_bytes=limit)
    assert apply(log) == gone
    assert log.size_bytes >= min(limit, 4 * SIZE)


# -- by log start


def test_segments_below_the_log_start_go_even_from_a_compacted_log(any_world: World) -> None:
    log = filled(any_world, cleanup_policy=frozenset({"compact"}), retention_ms=1, retention_bytes=0)
    assert apply(log, START_MS + 10**10) == []
    log.raise_start_offset(2)
    assert apply(log) == [0, 1]
    log.raise_start_offset(4)
    assert apply(log) == [2]  # never the active one
    assert log.start_offset == 4


def test_a_log_start_inside_a_segment_keeps_it(world: World) -> None:
    log = world.load()
    append(log, 10)
    log.roll()
    append(log)
    log.raise_high_watermark(11)
    log.raise_start_offset(9)
    assert apply(log) == []
    log.raise_start_offset(10)
    assert apply(log) == [0]


# -- limits


@pytest.mark.parametrize(("high_watermark", "gone"), [(0, []), (1, [0]), (2, [0, 1]), (4, [0, 1, 2, 3])])
def test_nothing_at_or_above_the_high_watermark_goes(
    world: World, high_watermark: int, gone: list[int]
) -> None:
    log = world.load(retention_ms=1)
    for number in range(4):
        if number:
            log.roll()
        append(log)
    log.raise_high_watermark(high_watermark)
    assert apply(log, START_MS + 10**9) == gone


def test_segments_go_from_the_oldest_on_without_a_hole(world: World) -> None:
    log = world.load(retention_ms=1000)
    for timestamp in (START_MS + 3_600_000, START_MS, START_MS):
        append(log, timestamp=timestamp)
        log.roll()
    log.raise_high_watermark(3)
    assert apply(log, START_MS + 3_600_000) == []


def test_readers_below_the_new_log_start_are_told(world: World) -> None:
    log = filled(world, retention_ms=60_000)
    apply(log, START_MS + 60_001)
    with pytest.raises(OffsetOutOfRangeError):
        read_all(log, 0)


def test_epochs_and_snapshots_of_what_is_gone_go_too(any_world: World) -> None:
    log = any_world.load(retention_ms=60_000)
    for number in range(4):
        if number:
            log.roll()
        append(log, timestamp=START_MS + 60_000 * number, epoch=number)
    log.raise_high_watermark(4)
    assert apply(log, START_MS + 120_001) == [0, 1]
    assert log.epochs.entries == [(2, 2), (3, 3)]
    assert snapshots.offsets(any_world.fs, any_world.path) == [2, 3]


# -- the files


def test_files_are_renamed_at_once_and_deleted_after_the_delay(any_world: World) -> None:
    log = filled(any_world, retention_ms=60_000, file_delete_delay_ms=5000)
    first = log.segments.first
    held = first.read(0, 1000, first.size, min_one_batch=True)
    assert held is not None
    apply(log, START_MS + 60_001)
    assert any_world.names(".deleted") == [
        segment_file(0, s, ".deleted") for s in (".index", ".log", ".timeindex")
    ]
    any_world.runtime.advance(4999)
    assert log.delete_due_files() == 0
    any_world.runtime.advance(1)
    assert log.delete_due_files() == 1
    assert any_world.names(".deleted") == []
    assert held[1].read() == batch(leader_epoch=0)  # a read under way goes on


def test_a_restart_forgets_nothing_and_brings_nothing_back(any_world: World) -> None:
    log = filled(any_world, retention_ms=60_000)
    apply(log, START_MS + 60_001)
    log.abandon()
    log = any_world.load()
    assert offsets(log) == [1, 2, 3]
    assert any_world.names(".deleted") == []


@pytest.mark.parametrize(
    "point",
    [
        Point("rename", "*.log", "ottla.storage.log.segment.rename"),
        Point("unlink", "*.snapshot", "ottla.storage.producers.snapshots.delete_before"),
        Point("rename", "leader-epoch-checkpoint.tmp", "ottla.storage.checkpoint.put_in_place"),
    ],
)
def test_an_error_of_the_disk_takes_the_directory_offline(world: World, point: Point) -> None:
    filled(world).close()
    faulty = FaultyFileSystem(world.fs, Fault(point, error=errno.EIO))
    world.fs = world.dir.fs = faulty
    log = world.load(clean=True, retention_ms=60_000)
    log.raise_high_watermark(4)
    with pytest.raises(StorageError):
        retention.apply(log, START_MS + 120_001)
    assert faulty.fired
    assert world.dir.offline


def test_an_error_while_files_are_deleted_takes_the_directory_offline(world: World) -> None:
    filled(world).close()
    point = Point("unlink", "*.log.deleted", "ottla.storage.log.segment.delete")
    world.fs = world.dir.fs = FaultyFileSystem(world.fs, Fault(point, error=errno.EIO))
    log = world.load(clean=True, retention_ms=60_000, file_delete_delay_ms=0)
    log.raise_high_watermark(4)
    retention.apply(log, START_MS + 120_001)
    with pytest.raises(StorageError):
        log.delete_due_files()
    assert world.dir.offline
