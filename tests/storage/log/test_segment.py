"""One segment: appending, index entries, finding and reading batches, cutting, renaming."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from ottla.config import LogConfig
from ottla.errors import CorruptRecordError, StorageError
from ottla.records import kernel
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.testing.runtime import START_MS
from tests.storage.world import SMALL, World, batch, records_in

BASE = 100


def config(**more: Any) -> LogConfig:
    return LogConfig(**{**SMALL, **more})


def make(world: World, base: int = BASE, **more: Any) -> Segment:
    world.fs.make_dir(world.path)
    settings = config(**more)
    segment = Segment(world.fs, world.path, base, settings, created_ms=START_MS)
    segment.open_for_append(settings)
    return segment


def put(segment: Segment, offset: int, count: int = 1, *, timestamp: int = -1, size: int = 5) -> int:
    """Append a batch [offset, offset + count); its size in bytes."""
    timestamp = START_MS + offset if timestamp < 0 else timestamp
    data = batch(count, base_offset=offset, timestamp=timestamp, value=b"v" * size)
    segment.append(data, len(data), offset + count - 1, timestamp + count - 1)
    return len(data)


def put_rows(segment: Segment, *batches: bytes) -> None:
    """As a follower appends."""
    data = b"".join(batches)
    rows = array("q", bytes(8 * kernel.ROW * len(batches)))
    count, _, _ = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)
    segment.append_rows(data, rows, count)


def read(segment: Segment, offset: int, max_bytes: int = 1 << 20, *, one: bool = True) -> list[int] | None:
    """Offsets in what a read gives."""
    found = segment.read(offset, max_bytes, segment.size, min_one_batch=one)
    if found is None:
        return None
    data = found[1].read()
    return [record.offset for record in records_in(data)] if data else []


# -- appending


@pytest.mark.parametrize("offset", [BASE - 1, BASE + MAX_RELATIVE_OFFSET + 1])
def test_an_offset_outside_the_segments_range_is_refused(world: World, offset: int) -> None:
    segment = make(world)
    with pytest.raises(StorageError):
        put(segment, offset)
    with pytest.raises(StorageError):
        put_rows(segment, batch(base_offset=offset))
    assert segment.size == 0
    assert world.fs.size(f"{world.path}/{BASE:020d}.log") == 0


@pytest.mark.parametrize("offset", [BASE, BASE + MAX_RELATIVE_OFFSET])
def test_both_ends_of_the_range_are_allowed(world: World, offset: int) -> None:
    segment = make(world)
    put(segment, offset)
    assert read(segment, offset) == [offset]


def test_an_index_entry_follows_more_than_the_interval(any_world: World) -> None:
    segment = make(any_world, index_interval_bytes=200)
    sizes = [put(segment, BASE + number) for number in range(10)]
    assert len(set(sizes)) == 1
    # 200 bytes lie between two entries at least; an entry names the batch that comes after them.
    step = 200 // sizes[0] + 1
    expected = [(BASE + n, n * sizes[0]) for n in range(step, 10, step)]
    index = segment.offset_index
    assert [index.entry(slot) for slot in range(index.entries)] == expected
    times = segment.time_index
    assert [times.entry(slot) for slot in range(times.entries)] == [(START_MS + o, o) for o, _ in expected]


def test_exactly_the_interval_is_not_enough(world: World) -> None:
    size = len(batch(base_offset=BASE))
    segment = make(world, index_interval_bytes=2 * size)
    for number in range(3):
        put(segment, BASE + number)
    assert segment.offset_index.entries == 0
    put(segment, BASE + 3)
    assert segment.offset_index.entries == 1


@pytest.mark.parametrize("interval", [0, 100, 333])
def test_many_batches_at_once_make_the_same_entries_as_one_by_one(world: World, interval: int) -> None:
    batches = [batch(2, base_offset=BASE + 2 * n, timestamp=START_MS + 7 * (n % 5)) for n in range(12)]
    one = make(world, index_interval_bytes=interval)
    for number, data in enumerate(batches):
        one.append(data, len(data), BASE + 2 * number + 1, START_MS + 7 * (number % 5) + 1)
    other = World(world.fs, "/other", world.runtime)
    many = make(other, index_interval_bytes=interval)
    put_rows(many, *batches[:5])
    put_rows(many, *batches[5:])
    for segment in (one, many):
        segment.become_inactive()
    for name in world.names():
        assert other.read(name) == world.read(name), name
    assert (one.max_timestamp, one.offset_of_max_timestamp) == (
        many.max_timestamp,
        many.offset_of_max_timestamp,
    )


def test_more_entries_than_the_index_holds_are_left_out(any_world: World) -> None:
    segment = make(
        any_world, index_interval_bytes=0, segment_index_bytes=36
    )  # 4 offsets, 3 times (one for the roll)
    put_rows(segment, *[batch(base_offset=BASE + n, timestamp=START_MS + n) for n in range(20)])
    assert segment.index_full
    assert read(segment, BASE + 15) == [BASE + n for n in range(15, 20)]
    segment.become_inactive()
    assert segment.time_index.last_entry == (START_MS + 19, BASE + 19)


def test_the_largest_timestamp_is_that_of_the_first_batch_that_has_it(world: World) -> None:
    segment = make(world)
    for number, time in enumerate([5, 9, 3, 9, 1]):
        put(segment, BASE + number, timestamp=START_MS + time)
    assert segment.max_timestamp == START_MS + 9
    assert segment.offset_of_max_timestamp == BASE + 1
    segment.become_inactive()
    assert segment.time_index.last_entry == (START_MS + 9, BASE + 1)


def test_the_age_of_records_without_timestamps_is_the_files(world: World) -> None:
    segment = make(world)
    segment.append(b"x", 1, BASE, -1)
    assert segment.max_timestamp == -1
    assert segment.largest_timestamp_ms() == world.fs.modified_ms(f"{world.path}/{BASE:020d}.log") == START_MS


def test_a_reloaded_segment_knows_its_timestamps(any_world: World) -> None:
    segment = make(any_world)
    put(segment, BASE, 3, timestamp=START_MS + 50)
    put(segment, BASE + 3, timestamp=START_MS + 10)
    segment.become_inactive()
    segment.close()
    again = Segment(any_world.fs, any_world.path, BASE, config())
    assert again.max_timestamp == START_MS + 52
    assert again.offset_of_max_timestamp == BASE + 2
    assert again.load_first_timestamp() == START_MS + 52
    assert again.size == segment.size


def test_a_preallocated_file_is_trimmed_when_the_segment_ends(any_world: World) -> None:
    segment = make(any_world, preallocate=True, internal_segment_bytes=50_000)
    path = f"{any_world.path}/{BASE:020d}.log"
    assert any_world.fs.size(path) == 50_000
    put(segment, BASE)
    put(segment, BASE + 1)
    assert read(segment, BASE) == [BASE, BASE + 1]
    segment.become_inactive()
    assert any_world.fs.size(path) == segment.size < 500


# -- reading


def test_an_empty_segment_and_offsets_past_the_end_give_nothing(any_world: World) -> None:
    segment = make(any_world)
    assert read(segment, BASE) is None
    put(segment, BASE, 3)
    assert read(segment, BASE + 3) is None


@pytest.mark.parametrize("interval", [0, 100, 4096])
def test_a_read_from_a_gap_or_before_the_first_offset_gives_the_next_batch(
    world: World, interval: int
) -> None:
    segment = make(world, index_interval_bytes=interval)
    put(segment, BASE + 10, 2)
    put(segment, BASE + 20, 2)
    put(segment, BASE + 30, 2)
    assert read(segment, BASE) == read(segment, BASE + 10)
    assert read(segment, BASE + 12) == [BASE + 20, BASE + 21, BASE + 30, BASE + 31]
    assert read(segment, BASE + 21) == [BASE + 20, BASE + 21, BASE + 30, BASE + 31]
    assert read(segment, BASE + 22) == [BASE + 30, BASE + 31]


def test_at_least_one_batch_is_read_if_asked_for(any_world: World) -> None:
    segment = make(any_world)
    size = put(segment, BASE, 3)
    put(segment, BASE + 3, 3)
    assert read(segment, BASE, 1) == [BASE, BASE + 1, BASE + 2]
    assert read(segment, BASE, 0) == [BASE, BASE + 1, BASE + 2]
    found = segment.read(BASE, 10, segment.size, min_one_batch=False)
    assert found is not None
    assert found[1].size == 10
    assert read(segment, BASE, 0, one=False) == []
    assert read(segment, BASE, size) == [BASE, BASE + 1, BASE + 2]


def test_a_read_ends_at_the_position_it_may_go_to(world: World) -> None:
    segment = make(world)
    size = put(segment, BASE)
    put(segment, BASE + 1)
    found = segment.read(BASE, 1 << 20, size, min_one_batch=True)
    assert found is not None
    assert found[1].size == size
    assert segment.read(BASE + 1, 1 << 20, size, min_one_batch=True) is None


@pytest.mark.parametrize("interval", [0, 500, 1 << 20])
def test_every_offset_is_found_whatever_the_index(any_world: World, interval: int) -> None:
    segment = make(any_world, index_interval_bytes=interval)
    for number in range(40):  # batches of 3 with gaps of 2, some larger than what one look reads
        put(segment, BASE + 5 * number, 3, size=3000 if number % 7 == 0 else 10)
    for offset in range(BASE, BASE + 200):
        located = segment.locate(offset)
        first = (
            BASE + (offset - BASE + 2) // 5 * 5 if (offset - BASE) % 5 > 2 else offset - (offset - BASE) % 5
        )
        if first >= BASE + 200:
            assert located is None
        else:
            assert located is not None
            assert (located.base_offset, located.last_offset) == (first, first + 2)


def test_a_lying_index_makes_reads_slower_but_not_wrong(any_world: World) -> None:
    segment = make(any_world, index_interval_bytes=0)
    for number in range(10):
        put(segment, BASE + number, size=50)
    segment.become_inactive()
    segment.close()
    good = any_world.read(f"{BASE:020d}.index")
    lying = bytearray(good)
    for at in range(4, len(lying), 8):  # positions inside batches
        lying[at : at + 4] = (int.from_bytes(lying[at : at + 4], "big") + 7).to_bytes(4, "big")
    any_world.write(f"{BASE:020d}.index", bytes(lying))
    again = Segment(any_world.fs, any_world.path, BASE, config())
    for number in range(10):
        assert read(again, BASE + number) == [BASE + n for n in range(number, 10)]


def test_garbage_in_the_way_of_a_lookup_is_an_error_not_an_end(world: World) -> None:
    segment = make(world)
    put(segment, BASE)
    segment.append(b"\xff" * 100, 100, BASE + 1, START_MS)
    with pytest.raises(CorruptRecordError):
        segment.locate(BASE + 1)


# -- cutting


def test_thirty_rounds_of_append_and_truncate(any_world: World) -> None:
    segment = make(any_world, index_interval_bytes=0, segment_index_bytes=16 * 12)
    offset = BASE
    for _ in range(30):
        put(segment, offset, 2)
        put(segment, offset + 2, 2)
        assert segment.truncate_to(offset + 2, START_MS) == offset + 2
        assert read(segment, offset) == [offset, offset + 1]
        assert read(segment, offset + 2) is None
        offset += 1
        assert segment.truncate_to(offset, START_MS) == offset - 1
        assert segment.size == 0
        offset = segment.base_offset


def test_a_cut_inside_a_batch_takes_the_whole_batch(any_world: World) -> None:
    segment = make(any_world, index_interval_bytes=0)
    put(segment, BASE, 10)
    size = segment.size
    put(segment, BASE + 10, 10)
    put(segment, BASE + 20, 10)
    assert segment.truncate_to(BASE + 15, START_MS) == BASE + 10
    assert segment.size == size == any_world.fs.size(f"{any_world.path}/{BASE:020d}.log")
    assert segment.offset_index.entries == 0
    put(segment, BASE + 10, 2)
    assert read(segment, BASE + 11) == [BASE + 10, BASE + 11]


def test_a_cut_in_a_gap_ends_the_log_there(world: World) -> None:
    segment = make(world)
    put(segment, BASE, 2)
    put(segment, BASE + 10, 2)
    assert segment.truncate_to(BASE + 5, START_MS) == BASE + 5
    assert read(segment, BASE) == [BASE, BASE + 1]


def test_a_cut_past_the_end_cuts_nothing(world: World) -> None:
    segment = make(world)
    put(segment, BASE, 2)
    assert segment.truncate_to(BASE + 2, START_MS) == BASE + 2
    assert read(segment, BASE) == [BASE, BASE + 1]


def test_a_cut_to_nothing_restarts_the_roll_timer(world: World) -> None:
    segment = make(world)
    put(segment, BASE, timestamp=START_MS + 1000)
    assert segment.truncate_to(BASE, START_MS + 5000) == BASE
    assert segment.created_ms == START_MS + 5000
    assert segment.load_first_timestamp() == -1
    assert segment.max_timestamp == -1
    put(segment, BASE, timestamp=START_MS + 7)
    assert segment.load_first_timestamp() == START_MS + 7
    assert segment.max_timestamp == START_MS + 7


@pytest.mark.parametrize("interval", [0, 150, 4096])
def test_a_cut_finds_the_largest_timestamp_that_is_left(any_world: World, interval: int) -> None:
    segment = make(any_world, index_interval_bytes=interval)
    times = [5, 2, 30, 7, 8, 60, 1]
    for number, time in enumerate(times):
        put(segment, BASE + number, timestamp=START_MS + time)
    for left in range(len(times) - 1, 0, -1):
        segment.truncate_to(BASE + left, START_MS)
        largest = max(times[:left])
        assert segment.max_timestamp == START_MS + largest
        assert segment.offset_of_max_timestamp == BASE + times.index(largest)


# -- names


def test_a_renamed_segment_is_still_read_and_written(any_world: World) -> None:
    segment = make(any_world, index_interval_bytes=0)
    put(segment, BASE)
    put(segment, BASE + 1)
    segment.rename(".cleaned")
    assert any_world.names() == [
        f"{BASE:020d}{suffix}.cleaned" for suffix in (".index", ".log", ".timeindex")
    ]
    put(segment, BASE + 2)
    assert read(segment, BASE + 1) == [BASE + 1, BASE + 2]
    segment.rename("")
    segment.release_all()
    assert read(segment, BASE) == [BASE, BASE + 1, BASE + 2]


def test_a_slice_outlives_the_name_of_its_segment(any_world: World) -> None:
    segment = make(any_world)
    put(segment, BASE)
    segment.become_inactive()
    found = segment.read(BASE, 1000, segment.size, min_one_batch=True)
    assert found is not None
    segment.rename(".deleted")
    segment.release_all()
    assert [record.offset for record in records_in(found[1].read())] == [BASE]


def test_a_deleted_segment_leaves_no_file(any_world: World) -> None:
    segment = make(any_world)
    put(segment, BASE)
    segment.delete()
    assert any_world.names() == []
    segment.delete()
