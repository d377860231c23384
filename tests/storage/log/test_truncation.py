"""Cutting a log: at any offset, fully, and what epochs, producers, indexes and offsets say afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.errors import OffsetOutOfRangeError, StorageError
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.producers import snapshots
from ottla.testing.runtime import START_MS
from tests.storage.world import World, append, batch, end_transaction, offsets, read_all

BIG: dict[str, Any] = {"internal_segment_bytes": 400, "index_interval_bytes": 0}


def fill(log: Log, batches: int = 10, count: int = 2) -> None:
    for _ in range(batches):
        append(log, count)


def test_thirty_rounds_of_append_and_truncate_at_every_place(any_world: World) -> None:
    log = any_world.load(**BIG)
    for offset in range(30):
        fill(log, 16 - log.end_offset // 2)
        assert log.end_offset in (32, 33)
        values = [record.offset for record in read_all(log)]
        assert values == list(range(log.end_offset))
        truncation.truncate_to(log, offset, no_point_on_disk)
        assert log.end_offset in (offset, offset - 1)  # the batch that holds the offset goes as a whole
        assert offsets(log) == list(range(log.end_offset))
    log.close()
    assert offsets(any_world.load(clean=True, **BIG)) == list(range(log.end_offset))


def test_a_cut_inside_a_batch_ends_the_log_at_its_base_offset(any_world: World) -> None:
    log = any_world.load()
    append(log, 10)
    append(log, 10)
    append(log, 10)
    assert truncation.truncate_to(log, 15, no_point_on_disk)
    assert log.end_offset == 10
    assert append(log, 3).first_offset == 10
    assert offsets(log) == list(range(13))


@pytest.mark.parametrize("offset", [10, 11, 1000])
def test_a_cut_at_or_past_the_end_cuts_nothing(world: World, offset: int) -> None:
    log = world.load()
    append(log, 10)
    assert not truncation.truncate_to(log, offset, no_point_on_disk)
    assert log.end_offset == 10
    assert offsets(log) == list(range(10))


def test_a_negative_offset_is_refused(world: World) -> None:
    log = world.load()
    with pytest.raises(StorageError):
        truncation.truncate_to(log, -1, no_point_on_disk)


def test_later_segments_go_and_the_one_that_begins_there_is_emptied(any_world: World) -> None:
    log = any_world.load()
    for _ in range(3):
        append(log, 5)
        log.roll()
    assert log.segments.bases == [0, 5, 10, 15]
    truncation.truncate_to(log, 5, no_point_on_disk)
    assert log.segments.bases == [0, 5]
    assert log.segments.active.size == 0
    assert log.end_offset == 5
    append(log, 2)
    assert offsets(log) == list(range(7))
    assert not [name for name in any_world.names() if name.startswith("0000000000000000001")]


def test_a_cut_segment_rolls_and_indexes_as_before(any_world: World) -> None:
    log = any_world.load(**BIG)
    fill(log, 12)
    truncation.truncate_to(log, 8, no_point_on_disk)
    fill(log, 12)
    log.close()
    untouched = World(any_world.fs, f"{any_world.root}/other", any_world.runtime)
    other = untouched.load(**BIG)
    fill(other, 16)
    other.close()
    for name in any_world.names():
        if not name.endswith(".snapshot"):
            assert any_world.read(name) == untouched.read(name), name


def test_below_the_first_segment_the_log_begins_anew(any_world: World) -> None:
    log = any_world.load()
    truncation.truncate_fully_and_start_at(log, 100, no_point_on_disk)
    append(log, 5)
    assert truncation.truncate_to(log, 50, no_point_on_disk)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (50, 50, 50)
    assert append(log).first_offset == 50


def test_high_watermark_and_log_start_never_lie_past_the_end(world: World) -> None:
    log = world.load()
    append(log, 5)
    append(log, 5)
    log.raise_high_watermark(10)
    log.raise_start_offset(8)
    truncation.truncate_to(log, 5, no_point_on_disk)
    assert log.high_watermark == 5
    assert log.start_offset == 5


def test_truncating_fully_drops_everything_and_starts_at_the_offset(any_world: World) -> None:
    log = any_world.load()
    append(log, 5, epoch=3, producer_id=1, producer_epoch=0, base_sequence=0)
    log.raise_high_watermark(5)
    log.roll()
    append(log, 5)
    truncation.truncate_fully_and_start_at(log, 180, no_point_on_disk)
    assert (log.start_offset, log.end_offset, log.high_watermark, log.recovery_point) == (180, 180, 180, 180)
    assert log.segments.bases == [180]
    assert log.epochs.entries == []
    assert log.producers.producers == {}
    assert snapshots.offsets(any_world.fs, any_world.path) == [180]
    with pytest.raises(OffsetOutOfRangeError):
        read_all(log, 0)
    assert append(log, epoch=4).first_offset == 180
    log.close()
    again = any_world.load(clean=True)
    assert (again.start_offset, again.end_offset, again.epochs.entries) == (180, 181, [(4, 180)])


def test_truncating_fully_to_a_lower_offset_works_too(world: World) -> None:
    log = world.load()
    append(log, 100)
    log.flush()
    truncation.truncate_fully_and_start_at(log, 0, no_point_on_disk)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (0, 0, 0)
    append(log)
    assert offsets(log) == [0]


def test_a_lower_log_start_may_be_given(world: World) -> None:
    log = world.load()
    truncation.truncate_fully_and_start_at(log, 20, no_point_on_disk, 10)
    assert (log.start_offset, log.end_offset) == (10, 20)


def test_epochs_beyond_the_cut_are_forgotten(world: World) -> None:
    log = world.load()
    for epoch in (1, 2, 5):
        append(log, 2, epoch=epoch)
    assert log.epochs.entries == [(1, 0), (2, 2), (5, 4)]
    truncation.truncate_to(log, 4, no_point_on_disk)
    assert log.epochs.entries == [(1, 0), (2, 2)]
    truncation.truncate_to(log, 3, no_point_on_disk)
    assert log.epochs.entries == [(1, 0)]


def test_a_cut_that_cuts_nothing_still_forgets_epochs_that_wrote_nothing(world: World) -> None:
    log = world.load()
    append(log, 2, epoch=1)
    log.epochs.assign(2, 2)
    assert not truncation.truncate_to(log, 2, no_point_on_disk)
    assert log.epochs.entries == [(1, 0)]


def test_producers_go_back_to_what_the_log_says(any_world: World) -> None:
    log = any_world.load()
    for sequence in range(4):
        append(log, producer_id=1, producer_epoch=0, base_sequence=sequence)
        if sequence == 1:
            log.roll()
    truncation.truncate_to(log, 3, no_point_on_disk)
    assert log.producers.producers[1].last_sequence == 2
    assert snapshots.offsets(any_world.fs, any_world.path) == [2]
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=3).first_offset == 3
    truncation.truncate_to(log, 0, no_point_on_disk)
    assert log.producers.producers == {}
    append(log, producer_id=1, producer_epoch=0, base_sequence=77)


def test_an_open_transaction_is_open_again_after_its_marker_is_cut(world: World) -> None:
    log = world.load()
    append(log)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 1)
    log.raise_high_watermark(3)
    assert log.first_unstable_offset is None
    truncation.truncate_to(log, 2, no_point_on_disk)
    assert log.first_unstable_offset == 1
    assert log.last_stable_offset == 1
    assert log.segments.active.txn_index.entries == []
    truncation.truncate_to(log, 1, no_point_on_disk)
    assert log.first_unstable_offset is None


def test_a_replicated_transaction_stays_stable_after_a_cut_behind_it(world: World) -> None:
    log = world.load()
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 1)
    append(log, 5)
    log.raise_high_watermark(2)
    assert log.last_stable_offset == 2
    append(log)
    truncation.truncate_to(log, 7, no_point_on_disk)
    assert log.last_stable_offset == 2
    assert len(log.segments.active.txn_index.entries) == 1


def test_a_cut_and_rewritten_log_has_no_trace_of_what_was_cut(any_world: World) -> None:
    log = any_world.load()
    append(log, 5, value=b"old" * 100)
    append(log, 5, value=b"old" * 100)
    truncation.truncate_to(log, 5, no_point_on_disk)
    append(log, 5, value=b"new")
    log.abandon()
    log = any_world.load()
    assert [record.value for record in read_all(log)] == [b"old" * 100] * 5 + [b"new"] * 5


def test_a_preallocated_log_can_be_cut(any_world: World) -> None:
    log = any_world.load(preallocate=True)
    append(log, 5)
    append(log, 5)
    truncation.truncate_to(log, 5, no_point_on_disk)
    append(log, 3)
    assert offsets(log) == list(range(8))
    log.close()
    assert any_world.fs.size(f"{any_world.path}/{0:020d}.log") == log.size_bytes


# -- log start offset


def test_records_below_the_log_start_cannot_be_read(any_world: World) -> None:
    log = any_world.load()
    append(log, 10)
    log.raise_high_watermark(10)
    assert log.raise_start_offset(4)
    assert not log.raise_start_offset(4)
    assert not log.raise_start_offset(3)
    with pytest.raises(OffsetOutOfRangeError):
        read_all(log, 3)
    assert offsets(log) == list(range(4, 10))


def test_the_log_start_never_passes_the_high_watermark(world: World) -> None:
    log = world.load()
    append(log, 10)
    log.raise_high_watermark(5)
    with pytest.raises(OffsetOutOfRangeError):
        log.raise_start_offset(6)
    assert log.start_offset == 0
    assert log.raise_start_offset(5)


def test_epochs_that_ended_before_the_log_start_are_forgotten(world: World) -> None:
    log = world.load()
    for epoch in range(3):
        append(log, 10, epoch=epoch)
    log.raise_high_watermark(30)
    log.raise_start_offset(15)
    assert log.epochs.entries == [(1, 15), (2, 20)]


def test_a_transaction_that_began_before_the_log_start_is_unstable_from_there(world: World) -> None:
    log = world.load()
    append(log, 5, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.raise_high_watermark(5)
    assert log.last_stable_offset == 0
    log.raise_start_offset(3)
    assert log.first_unstable_offset == 3
    assert log.last_stable_offset == 3


def test_a_producer_is_known_after_a_reload_with_the_log_start_inside_its_batch(world: World) -> None:
    log = world.load()
    append(log, 10, producer_id=1, producer_epoch=0, base_sequence=0)
    log.close()
    world.fs.unlink(f"{world.path}/{10:020d}.snapshot")
    log = world.load(clean=True, start_offset=5)
    assert append(log, 10, producer_id=1, producer_epoch=0, base_sequence=0).is_duplicate


def test_the_largest_time_after_a_cut_is_that_of_what_is_left(world: World) -> None:
    log = world.load()
    append(log, timestamp=START_MS + 5)
    append(log, timestamp=START_MS + 50)
    truncation.truncate_to(log, 1, no_point_on_disk)
    assert log.segments.active.max_timestamp == START_MS + 5


def test_a_follower_cuts_and_fetches_again(world: World) -> None:
    log = world.load()
    log.append_as_follower(batch(3, base_offset=0, leader_epoch=1) + batch(3, base_offset=3, leader_epoch=1))
    truncation.truncate_to(log, 3, no_point_on_disk)
    log.append_as_follower(batch(2, base_offset=3, leader_epoch=2))
    assert offsets(log) == [0, 1, 2, 3, 4]
    assert log.epochs.entries == [(1, 0), (2, 3)]


# -- the recovery point


@pytest.mark.parametrize("cut", [truncation.truncate_to, truncation.truncate_fully_and_start_at])
def test_the_recovery_point_is_lowered_and_written_before_anything_is_cut(world: World, cut: Any) -> None:
    log = world.load(**BIG)
    for _ in range(10):
        append(log, 5)
    log.flush()
    seen: list[tuple[int, int, int]] = []
    cut(log, 20, lambda: seen.append((log.recovery_point, log.end_offset, len(log.segments))))
    (at_the_cut,) = seen
    assert at_the_cut[0] <= 20
    assert at_the_cut[1] == 50
    assert at_the_cut[2] > len(log.segments), "everything was still there"


@pytest.mark.parametrize("cut", [truncation.truncate_to, truncation.truncate_fully_and_start_at])
def test_nothing_is_cut_if_the_recovery_point_cannot_be_written(world: World, cut: Any) -> None:
    log = world.load()
    append(log, 5)

    def fails() -> None:
        raise StorageError("no room")

    with pytest.raises(StorageError):
        cut(log, 2, fails)
    assert offsets(log) == list(range(5))


def test_a_cut_that_cuts_nothing_writes_nothing(world: World) -> None:
    log = world.load()
    append(log, 5)

    def fails() -> None:
        raise StorageError("no room")

    assert not truncation.truncate_to(log, 5, fails)
