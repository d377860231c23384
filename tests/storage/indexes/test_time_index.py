"""The time index: floor lookups by timestamp, both columns only grow, and what its sanity check notices."""

from __future__ import annotations

import struct

import pytest

from ottla.errors import CorruptIndexError
from ottla.storage.indexes.time_index import TimeIndex
from tests.storage.world import World

BASE = 345
NAME = f"{BASE:020d}.timeindex"


def make(world: World, entries: int = 0, capacity: int = 20) -> TimeIndex:
    """Entry n is (10 n + 10, BASE + n + 1)."""
    world.fs.make_dir(world.path)
    index = TimeIndex(world.fs, f"{world.path}/{NAME}", BASE, capacity * 12)
    index.open_for_append(capacity * 12)
    for number in range(entries):
        index.maybe_append(10 * number + 10, BASE + number + 1)
    return index


def test_an_empty_index_answers_with_no_timestamp(any_world: World) -> None:
    index = make(any_world)
    assert index.lookup(100) == (-1, BASE)
    assert index.last_entry == (-1, BASE)


def test_a_lookup_gives_the_floor(any_world: World) -> None:
    index = make(any_world, 3)
    assert index.lookup(9) == (-1, BASE)
    assert index.lookup(10) == (10, BASE + 1)
    assert index.lookup(29) == (20, BASE + 2)
    assert index.lookup(2**62) == (30, BASE + 3)
    assert index.last_entry == (30, BASE + 3)


def test_an_entry_is_twelve_bytes_big_endian(any_world: World) -> None:
    index = make(any_world, 1)
    index.trim()
    assert any_world.read(NAME) == struct.pack(">qi", 10, 1)


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(20, BASE + 9), (19, BASE + 9), (-1, BASE + 9), (30, BASE + 2), (30, BASE + 1)]
)
def test_an_entry_that_does_not_grow_in_both_columns_is_left_out(
    world: World, timestamp: int, offset: int
) -> None:
    index = make(world, 2)
    index.maybe_append(timestamp, offset)
    assert index.entries == 2
    assert index.last_entry == (20, BASE + 2)


def test_records_without_timestamps_make_no_entry(world: World) -> None:
    index = make(world)
    index.maybe_append(-1, BASE)
    assert index.entries == 0


def test_the_last_slot_is_kept_for_the_entry_of_a_roll(any_world: World) -> None:
    index = make(any_world, 3, capacity=5)
    assert not index.is_full
    index.maybe_append(100, BASE + 10)
    assert index.is_full
    index.maybe_append(200, BASE + 20)
    assert index.last_entry == (200, BASE + 20)


@pytest.mark.parametrize(
    ("offset", "left"), [(BASE, 0), (BASE + 1, 0), (BASE + 2, 1), (BASE + 3, 2), (BASE + 4, 3)]
)
def test_truncation_drops_entries_from_the_offset_on(any_world: World, offset: int, left: int) -> None:
    index = make(any_world, 3)
    index.truncate_to(offset)
    assert index.entries == left
    assert index.last_entry == ((10 * left, BASE + left) if left else (-1, BASE))


def test_a_reopened_index_has_the_same_entries_and_takes_more(any_world: World) -> None:
    index = make(any_world, 3)
    index.trim()
    index.close()
    again = TimeIndex(any_world.fs, index.path, BASE, 240)
    again.sanity_check()
    assert again.last_entry == (30, BASE + 3)
    again.open_for_append(240)
    again.maybe_append(40, BASE + 4)
    assert again.lookup(45) == (40, BASE + 4)


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 13,
        struct.pack(">qi", 10, -1),
        struct.pack(">qiqi", 20, 1, 10, 2),
        struct.pack(">qiqi", 20, 1, 0, 0),
        bytes(24),
    ],
    ids=["length", "offset", "timestamp", "zero tail", "zeros"],
)
def test_the_sanity_check_notices(world: World, content: bytes) -> None:
    world.write(NAME, content)
    with pytest.raises(CorruptIndexError):
        TimeIndex(world.fs, f"{world.path}/{NAME}", BASE, 240).sanity_check()


@pytest.mark.parametrize(
    "content", [b"", struct.pack(">qi", 0, 0), struct.pack(">qi", 7, 0), struct.pack(">qiqi", 7, 0, 8, 1)]
)
def test_the_sanity_check_passes_what_can_be(world: World, content: bytes) -> None:
    world.write(NAME, content)
    TimeIndex(world.fs, f"{world.path}/{NAME}", BASE, 240).sanity_check()


def test_the_epoch_of_unix_is_a_timestamp(world: World) -> None:
    index = make(world)
    index.maybe_append(0, BASE)
    assert index.last_entry == (0, BASE)
    assert index.entries == 1
