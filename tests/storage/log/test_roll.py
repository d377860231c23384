"""When a log begins a new segment: each of the five reasons by itself, and the special cases of rolling."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.errors import RecordBatchTooLargeError, StorageError
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.storage.layout import segment_file
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.producers import snapshots
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.storage.world import World, append, batch, offsets

SIZE = len(batch())
NO_TIME: dict[str, Any] = {"message_timestamp_before_max_ms": 2**62, "message_timestamp_after_max_ms": 2**62}


def bases(log: Log) -> list[int]:
    return log.segments.bases


# -- by size


def test_a_segment_takes_exactly_its_size(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=3 * SIZE)
    for _ in range(3):
        append(log)
    assert bases(log) == [0]
    append(log)
    assert bases(log) == [0, 3]
    assert offsets(log) == [0, 1, 2, 3]


def test_what_does_not_fit_into_a_segment_is_refused_and_changes_nothing(world: World) -> None:
    log = world.load(internal_segment_bytes=3 * SIZE)
    append(log)
    with pytest.raises(RecordBatchTooLargeError) as refused:
        append(log, value=b"v" * 3 * SIZE, epoch=1)
    assert refused.value.code == 18
    with pytest.raises(RecordBatchTooLargeError):
        log.append_as_follower(batch(value=b"v" * 3 * SIZE, base_offset=1, leader_epoch=1))
    assert (bases(log), log.end_offset, log.epochs.latest_epoch) == ([0], 1, 0)


# -- by time


def test_a_segment_rolls_when_a_record_is_older_than_segment_ms_after_its_first(world: World) -> None:
    log = world.load(segment_ms=1000)
    append(log, timestamp=START_MS)
    append(log, timestamp=START_MS + 1000)
    assert bases(log) == [0]
    append(log, timestamp=START_MS + 1001)
    assert bases(log) == [0, 2]
    append(log, timestamp=START_MS + 2001)
    assert bases(log) == [0, 2]


def test_the_wall_clock_does_not_matter_where_records_have_timestamps(world: World) -> None:
    log = world.load(segment_ms=1000)
    append(log)
    world.runtime.advance(50_000)
    append(log)
    assert bases(log) == [0]


def test_the_age_counts_from_the_largest_timestamp_of_the_first_batch(world: World) -> None:
    log = world.load(segment_ms=1000)
    append(log, 101, timestamp=START_MS)  # up to START_MS + 100
    append(log, timestamp=START_MS + 1100)
    assert bases(log) == [0]
    append(log, timestamp=START_MS + 1101)
    assert bases(log) == [0, 102]


def test_the_age_is_read_again_after_a_reload(any_world: World) -> None:
    log = any_world.load(segment_ms=1000)
    append(log, timestamp=START_MS)
    append(log, timestamp=START_MS + 900)
    log.close()
    any_world.runtime.advance(10_000)
    log = any_world.load(clean=True, segment_ms=1000)
    append(log, timestamp=START_MS + 1000)
    assert bases(log) == [0]
    append(log, timestamp=START_MS + 1001)
    assert bases(log) == [0, 3]


def test_without_timestamps_the_age_is_that_of_the_segment(world: World) -> None:
    log = world.load(segment_ms=1000, **NO_TIME)
    world.runtime.advance(5000)
    append(log, timestamp=-1)
    assert bases(log) == [0]  # it was empty
    append(log, timestamp=-1)
    assert bases(log) == [0, 1]
    world.runtime.advance(1000)
    append(log, timestamp=-1)
    assert bases(log) == [0, 1]
    world.runtime.advance(1)
    append(log, timestamp=-1)
    assert bases(log) == [0, 1, 3]


def test_an_empty_segment_never_rolls_by_time(world: World) -> None:
    log = world.load(segment_ms=1000)
    world.runtime.advance(100_000)
    append(log, timestamp=START_MS + 100_000)
    assert bases(log) == [0]


def test_a_cut_to_nothing_restarts_the_timer(world: World) -> None:
    log = world.load(segment_ms=1000)
    append(log)
    truncation.truncate_to(log, 0, no_point_on_disk)
    append(log, timestamp=START_MS + 50_000)
    assert bases(log) == [0]


def test_jitter_takes_a_random_part_off_segment_ms(world: World) -> None:
    log = world.load(segment_ms=1000, segment_jitter_ms=500)
    log.roll()
    jitter = log.segments.active.roll_jitter_ms
    assert 0 < jitter < 500
    append(log, timestamp=START_MS)
    append(log, timestamp=START_MS + 1000 - jitter)
    assert len(bases(log)) == 1
    append(log, timestamp=START_MS + 1001 - jitter)
    assert len(bases(log)) == 2
    jitters = set()
    for number in range(10):
        append(log, timestamp=START_MS + 10_000 * (number + 1))
        jitters.add(log.segments.active.roll_jitter_ms)
    assert len(jitters) > 5
    assert max(jitters) < 500


def test_a_reloaded_segment_has_jitter_too(world: World) -> None:
    log = world.load(segment_ms=1000, segment_jitter_ms=500)
    append(log)
    log.close()
    found = set()
    for _ in range(5):
        log = world.load(clean=True, segment_ms=1000, segment_jitter_ms=500)
        found.add(log.segments.active.roll_jitter_ms)
        log.close()
    assert len(found) > 1


def test_jitter_is_never_more_than_segment_ms(world: World) -> None:
    log = world.load(segment_ms=10, segment_jitter_ms=10_000)
    for _ in range(20):
        log.roll()
        assert log.segments.active.roll_jitter_ms < 10


def test_a_compacted_log_rolls_by_its_compaction_lag(world: World) -> None:
    log = world.load(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=100)
    append(log, timestamp=START_MS)
    append(log, timestamp=START_MS + 101)
    assert bases(log) == [0, 1]


# -- by a full index


def test_a_full_offset_index_rolls(world: World) -> None:
    log = world.load(
        segment_index_bytes=48, index_interval_bytes=0
    )  # 6 offsets, 4 times of which one is kept
    for _ in range(7):
        append(log, timestamp=START_MS)  # one time-index entry only
    assert bases(log) == [0]
    append(log, timestamp=START_MS)
    assert bases(log) == [0, 7]


def test_a_full_time_index_rolls(world: World) -> None:
    log = world.load(segment_index_bytes=48, index_interval_bytes=0)
    for number in range(4):
        append(log, timestamp=START_MS + number)
    assert bases(log) == [0]
    assert log.segments.active.time_index.entries == 3
    append(log, timestamp=START_MS + 4)
    assert bases(log) == [0, 4]
    assert log.segments.first.time_index.entries == 3  # the last entry was the largest already


def test_the_smallest_index_still_works(world: World) -> None:
    log = world.load(segment_index_bytes=4, index_interval_bytes=0)
    for number in range(5):
        append(log, timestamp=START_MS + number)
    assert offsets(log) == [0, 1, 2, 3, 4]


# -- by offset


def test_a_gap_of_two_to_the_31_rolls(any_world: World) -> None:
    log = any_world.load()
    append(log)
    log.append_as_follower(batch(base_offset=MAX_RELATIVE_OFFSET, leader_epoch=0))
    assert bases(log) == [0]
    log.append_as_follower(batch(base_offset=MAX_RELATIVE_OFFSET + 1, leader_epoch=0))
    assert bases(log) == [0, MAX_RELATIVE_OFFSET + 1]
    assert offsets(log) == [0, MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1]
    log.close()
    assert offsets(any_world.load(clean=True)) == [0, MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1]


def test_the_last_offset_of_a_batch_counts(world: World) -> None:
    log = world.load()
    append(log)
    log.append_as_follower(batch(3, base_offset=MAX_RELATIVE_OFFSET - 1, leader_epoch=0))
    assert bases(log) == [0, MAX_RELATIVE_OFFSET - 1]


# -- what a roll does


def test_a_roll_trims_the_old_indexes_and_keeps_the_largest_timestamp(any_world: World) -> None:
    log = any_world.load()
    append(log, 3)
    log.roll()
    assert any_world.read(segment_file(0, ".index")) == b""
    assert len(any_world.read(segment_file(0, ".timeindex"))) == 12
    assert any_world.read(segment_file(3, ".index")) == b""
    assert log.segments.first.time_index.last_entry == (START_MS + 2, 2)


def test_a_roll_takes_a_producer_snapshot_at_the_new_base(world: World) -> None:
    log = world.load()
    append(log, producer_id=5, producer_epoch=0, base_sequence=0)
    log.roll()
    assert snapshots.offsets(world.fs, world.path) == [1]
    assert segment_file(1, ".snapshot") in world.names()


def test_rolling_an_empty_active_segment_recreates_it(any_world: World) -> None:
    log = any_world.load()
    append(log)
    log.roll()
    before = log.segments.active
    log.roll()
    assert bases(log) == [0, 1]
    assert log.segments.active is not before
    append(log)
    assert offsets(log) == [0, 1]


def test_rolling_ahead_of_the_end_is_allowed_but_never_behind_the_active_base(world: World) -> None:
    log = world.load()
    append(log, 3)
    log.roll(10)
    assert bases(log) == [0, 10]
    with pytest.raises(StorageError):
        log.roll()
    assert bases(log) == [0, 10]
    assert not world.dir.offline


def test_left_over_files_of_the_new_name_are_deleted_first(any_world: World) -> None:
    log = any_world.load(index_interval_bytes=0)
    append(log, 3)
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        any_world.write(segment_file(3, suffix), b"left over")
    log.roll()
    append(log, 2)
    assert offsets(log) == [0, 1, 2, 3, 4]
    assert segment_file(3, ".txnindex") not in any_world.names()


def test_the_recovery_point_moves_with_the_flush_not_with_the_roll() -> None:
    disk = SimulatedDisk()
    world = World(disk, "/data", SimulatedRuntime(queued=True))
    log = world.load()
    append(log, 3)
    log.roll()
    assert log.recovery_point == 0
    world.runtime.run_pending()
    assert log.recovery_point == 3


def test_a_follower_rolls_at_the_first_fetched_offset(world: World) -> None:
    log = world.load(internal_segment_bytes=3 * SIZE)
    log.append_as_follower(batch(base_offset=0, leader_epoch=0) + batch(base_offset=1, leader_epoch=0))
    log.append_as_follower(batch(base_offset=10, leader_epoch=0) + batch(base_offset=12, leader_epoch=0))
    assert bases(log) == [0, 10]
    assert offsets(log) == [0, 1, 10, 12]


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_compressed_message_says_only_its_last_offset_so_the_roll_is_at_the_end(
    world: World, magic: int
) -> None:
    def wrapped(*numbers: int) -> bytes:
        return build_message_set(
            [LegacyRecord(n, START_MS, 0, b"k", b"v") for n in numbers], magic, Codec.GZIP
        )

    size = len(wrapped(0, 1, 2, 3))
    log = world.load(internal_segment_bytes=size + size // 2)
    log.append_as_follower(wrapped(0, 1, 2, 3))
    log.append_as_follower(wrapped(4, 5, 6, 7))
    assert bases(log) == [0, 4]
    assert log.end_offset == 8
