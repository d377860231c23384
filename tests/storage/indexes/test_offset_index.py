"""The offset index: floor lookups, growth, truncation, reopening, and what its sanity check notices."""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptIndexError, IndexFullError, StorageError
from ottla.storage.fs import RealFileSystem
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.testing.disk import SimulatedDisk
from tests.storage.world import World

BASE = 1000
NAME = f"{BASE:020d}.index"


def make(world: World, entries: int = 0, capacity: int = 64) -> OffsetIndex:
    """Entry n is (BASE + 10 n + 10, 100 n + 100)."""
    world.fs.make_dir(world.path)
    index = OffsetIndex(world.fs, f"{world.path}/{NAME}", BASE, capacity * 8)
    index.open_for_append(capacity * 8)
    for number in range(entries):
        index.append(BASE + 10 * number + 10, 100 * number + 100)
    return index


def reopened(world: World, index: OffsetIndex) -> OffsetIndex:
    index.trim()
    index.close()
    return OffsetIndex(world.fs, index.path, BASE, 64 * 8)


def test_a_lookup_in_an_empty_index_gives_the_base_offset_at_position_0(any_world: World) -> None:
    assert make(any_world).lookup(BASE + 5) == (BASE, 0)


def test_a_lookup_gives_the_floor(any_world: World) -> None:
    index = make(any_world, 5)
    assert index.lookup(BASE + 9) == (BASE, 0)
    assert index.lookup(BASE + 10) == (BASE + 10, 100)
    assert index.lookup(BASE + 19) == (BASE + 10, 100)
    assert index.lookup(BASE + 50) == (BASE + 50, 500)
    assert index.lookup(BASE + 10_000) == (BASE + 50, 500)


def test_the_upper_bound_of_a_read_is_the_next_entry(any_world: World) -> None:
    index = make(any_world, 3)
    assert index.offset_at_or_after(0) == BASE + 10
    assert index.offset_at_or_after(100) == BASE + 10
    assert index.offset_at_or_after(101) == BASE + 20
    assert index.offset_at_or_after(301) is None


def test_an_entry_is_eight_bytes_big_endian(any_world: World) -> None:
    index = make(any_world, 2)
    index.trim()
    assert any_world.read(NAME) == struct.pack(">iiii", 10, 100, 20, 200)


@pytest.mark.parametrize("offset", [BASE + 20, BASE + 19, BASE])
def test_offsets_must_grow(world: World, offset: int) -> None:
    index = make(world, 2)
    with pytest.raises(StorageError):
        index.append(offset, 300)
    assert index.entries == 2


def test_a_full_index_takes_no_more(any_world: World) -> None:
    index = make(any_world, 3, capacity=4)
    assert not index.is_full
    index.append(BASE + 99, 999)
    assert index.is_full
    with pytest.raises(IndexFullError):
        index.append(BASE + 100, 1000)


def test_a_reopened_index_has_the_same_entries(any_world: World) -> None:
    index = reopened(any_world, make(any_world, 3))
    assert index.entries == 3
    assert index.last_offset == BASE + 30
    assert index.lookup(BASE + 25) == (BASE + 20, 200)


def test_a_reopened_index_takes_more_entries_and_trims_again(any_world: World) -> None:
    index = reopened(any_world, make(any_world, 3))
    index.open_for_append(64 * 8)
    assert any_world.fs.size(index.path) == 3 * 8  # it grows with its entries
    index.append(BASE + 77, 777)
    index.trim()
    assert any_world.fs.size(index.path) == 4 * 8
    assert index.lookup(BASE + 80) == (BASE + 77, 777)


def test_growing_the_limit_makes_room_and_shrinking_it_keeps_entries(any_world: World) -> None:
    index = make(any_world, 4, capacity=4)
    index.open_for_append(8 * 8)
    index.append(BASE + 50, 500)
    index.open_for_append(8)
    assert index.entries == 5
    assert index.is_full
    assert index.lookup(BASE + 50) == (BASE + 50, 500)


@pytest.mark.parametrize(
    ("offset", "left"),
    [(BASE, 0), (BASE + 10, 0), (BASE + 11, 1), (BASE + 30, 2), (BASE + 31, 3), (BASE + 99, 3)],
)
def test_truncation_drops_entries_from_the_offset_on(any_world: World, offset: int, left: int) -> None:
    index = make(any_world, 3)
    index.truncate_to(offset)
    assert index.entries == left
    assert index.last_offset == BASE + 10 * left
    index.append(BASE + 40, 400)
    assert index.lookup(BASE + 40) == (BASE + 40, 400)


def test_dropped_entries_leave_no_trace_in_the_file(any_world: World) -> None:
    index = make(any_world, 3)
    index.truncate_to(BASE + 11)
    index.close()
    assert any_world.read(NAME).rstrip(b"\0") == struct.pack(">ii", 10, 100)


def test_a_reset_forgets_everything_and_has_no_limit(any_world: World) -> None:
    index = make(any_world, 3, capacity=4)
    index.reset()
    assert index.entries == 0
    index.append_raw(b"".join(struct.pack(">ii", n + 1, n + 1) for n in range(100)))
    assert index.lookup(BASE + 50) == (BASE + 50, 50)
    index.trim()
    assert any_world.fs.size(index.path) == 800


def test_raw_entries_beyond_the_limit_are_left_out(world: World) -> None:
    index = make(world, 3, capacity=4)
    index.append_raw(struct.pack(">iiii", 40, 400, 50, 500))
    index.append_raw(struct.pack(">ii", 60, 600))
    assert index.is_full
    assert index.lookup(BASE + 99) == (BASE + 40, 400)


@pytest.mark.parametrize(
    "content",
    [b"\0" * 7, struct.pack(">ii", -1, 100), struct.pack(">ii", 10, 0), bytes(16), b"\xff" * 16],
    ids=["length", "offset", "position", "zeros", "ones"],
)
def test_the_sanity_check_notices(world: World, content: bytes) -> None:
    world.write(NAME, content)
    with pytest.raises(CorruptIndexError):
        OffsetIndex(world.fs, f"{world.path}/{NAME}", BASE, 512).sanity_check()


def test_a_healthy_or_empty_index_passes_the_sanity_check(any_world: World) -> None:
    reopened(any_world, make(any_world, 3)).sanity_check()
    any_world.write(NAME, b"")
    OffsetIndex(any_world.fs, f"{any_world.path}/{NAME}", BASE, 512).sanity_check()


def test_a_handle_that_was_let_go_is_opened_again(any_world: World) -> None:
    index = make(any_world, 2)
    index.release()
    index.append(BASE + 30, 300)
    index.release()
    assert index.lookup(BASE + 30) == (BASE + 30, 300)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 2**31 - 1), unique=True, max_size=40), st.integers(0, 2**31))
def test_a_lookup_agrees_with_a_plain_search(relative: list[int], asked: int) -> None:
    fs = SimulatedDisk()
    index = OffsetIndex(fs, "/i", BASE, 512)
    index.open_for_append(512)
    entries = [(BASE + offset, number + 1) for number, offset in enumerate(sorted(relative))]
    for offset, position in entries:
        index.append(offset, position)
    expected = max([entry for entry in entries if entry[0] <= BASE + asked], default=(BASE, 0))
    assert index.lookup(BASE + asked) == expected


def test_new_entries_are_gathered_before_they_are_written(any_world: World) -> None:
    index = make(any_world, 5)
    assert any_world.read(NAME) == b""
    assert (index.entries, index.room, index.last_offset) == (5, 59, BASE + 50)


def test_a_lookup_sees_entries_that_were_not_written_yet(any_world: World) -> None:
    index = make(any_world, 5)
    assert index.lookup(BASE + 50) == (BASE + 50, 500)
    index.append(BASE + 60, 600)  # the file is mapped now
    assert index.lookup(BASE + 60) == (BASE + 60, 600)
    assert any_world.read(NAME)[: 6 * 8] == b"".join(
        struct.pack(">ii", 10 * number, 100 * number) for number in range(1, 7)
    )


def test_many_entries_are_written_without_being_asked_for(any_world: World) -> None:
    make(any_world, 300, capacity=400)
    expected = b"".join(struct.pack(">ii", 10 * number, 100 * number) for number in range(1, 257))
    assert any_world.read(NAME) == expected


def test_entries_outlive_a_release_before_they_are_written(any_world: World) -> None:
    index = make(any_world, 3)
    index.release()
    index.append(BASE + 40, 400)
    assert [index.entry(slot) for slot in range(4)] == [(BASE + 10 * n, 100 * n) for n in range(1, 5)]


def test_entries_that_were_not_written_can_be_cut(any_world: World) -> None:
    index = make(any_world, 5)
    index.truncate_to(BASE + 30)
    assert index.entries == 2
    index.append(BASE + 31, 301)
    index.trim()
    assert any_world.read(NAME) == struct.pack(">iiiiii", 10, 100, 20, 200, 31, 301)


def test_a_sync_writes_what_was_gathered(any_world: World) -> None:
    index = make(any_world, 2)
    index.sync()
    assert any_world.read(NAME)[:16] == struct.pack(">iiii", 10, 100, 20, 200)


def test_entries_made_elsewhere_follow_those_that_were_gathered(any_world: World) -> None:
    index = make(any_world, 2)
    index.append_raw(struct.pack(">ii", 30, 300))
    assert [index.entry(slot) for slot in range(3)] == [(BASE + 10 * n, 100 * n) for n in range(1, 4)]


def test_a_rebuild_forgets_what_was_gathered(any_world: World) -> None:
    index = make(any_world, 2)
    index.reset()
    index.append_raw(struct.pack(">ii", 7, 70))
    index.trim()
    assert any_world.read(NAME) == struct.pack(">ii", 7, 70)


def test_opening_for_append_again_keeps_what_was_gathered(any_world: World) -> None:
    index = make(any_world, 2)
    index.open_for_append(64 * 8)
    index.trim()
    assert any_world.read(NAME) == struct.pack(">iiii", 10, 100, 20, 200)


def test_a_close_writes_nothing(any_world: World) -> None:
    make(any_world, 2).close()
    assert any_world.read(NAME) == b""


@pytest.mark.parametrize("keep", [0, 3, 8, 4096, 4100])
def test_a_file_that_was_cut_from_outside_costs_time_and_nothing_else(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "00000000000000000000.index"
    index = OffsetIndex(RealFileSystem(), str(path), 0, 1 << 20, writable=True)
    index.open_for_append(1 << 20)
    for number in range(1, 2001):
        index.append(number * 10, number * 4096)
    assert index.lookup(19_999) == (19_990, 1999 * 4096)
    with path.open("r+b") as file:
        file.truncate(keep)
    index.release()
    for offset in (5, 10, 999, 19_999, 30_000):
        found = index.lookup(offset)
        assert found[0] <= offset
        assert found == (0, 0) or found == (found[0], found[0] // 10 * 4096)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=3000), st.data())
@settings(max_examples=30, deadline=None)
def test_lookups_in_uneven_indexes_agree_with_a_plain_search(steps: list[int], data: st.DataObject) -> None:
    disk = SimulatedDisk()
    disk.make_dir("/d")
    index = OffsetIndex(disk, "/d/0.index", 0, 1 << 20, writable=True)
    index.open_for_append(1 << 20)
    offsets = list(accumulate(steps))
    for position, offset in enumerate(offsets, 1):
        index.append(offset, position)
    for target in data.draw(st.lists(st.integers(-1, offsets[-1] + 10), max_size=20)):
        slot = bisect_right(offsets, target) - 1
        assert index.lookup(target) == ((offsets[slot], slot + 1) if slot >= 0 else (0, 0))
