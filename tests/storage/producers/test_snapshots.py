"""Producer snapshots: their bytes, which one is loaded, and which ones go."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptSnapshotError
from ottla.storage.producers import snapshot_file as producer_snapshot
from ottla.storage.producers import snapshots
from ottla.storage.producers.snapshot_file import SnapshotEntry
from ottla.storage.producers.state import ProducerState
from tests.storage.world import World

ENTRY = SnapshotEntry(7, 3, 15, 1000, 5, 1_700_000_000_000, 2, 990)


def state_at(offset: int, producer_id: int = 1) -> ProducerState:
    state = ProducerState(2**62)
    state.append_batch(producer_id, 0, 0, 1, 0, 0, 0, False)
    state.end_offset = offset
    return state


def take(world: World, *offsets: int) -> None:
    """Snapshots at these offsets; each knows one producer, with the offset as its id."""
    world.fs.make_dir(world.path)
    for offset in offsets:
        snapshots.take(world.fs, world.path, state_at(offset, producer_id=offset))


def load(world: World, start: int, end: int) -> ProducerState:
    state = ProducerState(2**62)
    snapshots.load_latest(world.fs, world.path, state, start, end, 0)
    return state


def left(world: World) -> list[int]:
    return snapshots.offsets(world.fs, world.path)


def test_the_bytes_are_those_of_kafka() -> None:
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", *ENTRY)
    assert producer_snapshot.encode([ENTRY]) == struct.pack(">hI", 1, crc32c(body)) + body


def numbers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(
            SnapshotEntry,
            numbers(64),
            numbers(16),
            numbers(32),
            numbers(64),
            numbers(32),
            numbers(64),
            numbers(32),
            numbers(64),
        ),
        max_size=20,
    )
)
def test_what_is_written_is_read(entries: list[SnapshotEntry]) -> None:
    assert producer_snapshot.decode(producer_snapshot.encode(entries), "f") == entries


@settings(max_examples=60)
@given(st.data())
def test_damage_anywhere_is_noticed(data: st.DataObject) -> None:
    good = producer_snapshot.encode([ENTRY, ENTRY._replace(producer_id=8)])
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    cut = good[: data.draw(st.integers(0, len(good) - 1))]
    for damaged in (bytes(bad), cut, good + b"\0"):
        with pytest.raises(CorruptSnapshotError):
            producer_snapshot.decode(damaged, "f")


def test_the_newest_snapshot_in_range_is_loaded(any_world: World) -> None:
    take(any_world, 10, 20, 30)
    for end, expected in [(30, 30), (29, 20), (20, 20), (10, 10)]:
        state = load(any_world, 0, end)
        assert state.end_offset == expected
        assert set(state.producers) == {expected}


def test_without_a_snapshot_in_range_the_state_is_empty_at_the_log_start(any_world: World) -> None:
    take(any_world, 10, 20)
    for start, end in [(0, 9), (20, 40), (25, 40)]:
        state = load(any_world, start, end)
        assert state.end_offset == start
        assert state.producers == {}


@pytest.mark.parametrize(
    "damage", [b"", b"\0\1", bytes(60), b"garbage" * 9], ids=["empty", "cut", "zeros", "garbage"]
)
def test_a_snapshot_that_cannot_be_read_is_removed_and_an_older_one_used(
    any_world: World, damage: bytes
) -> None:
    take(any_world, 10, 20)
    any_world.write("00000000000000000020.snapshot", damage)
    assert load(any_world, 0, 30).end_offset == 10
    assert left(any_world) == [10]


def test_taking_a_snapshot_again_replaces_it(any_world: World) -> None:
    any_world.write("00000000000000000005.snapshot", b"x" * 1000)
    take(any_world, 5)
    assert set(load(any_world, 0, 5).producers) == {5}


def test_snapshots_after_a_cut_and_before_the_log_start_go(any_world: World) -> None:
    take(any_world, 10, 20, 30, 40)
    snapshots.delete_after(any_world.fs, any_world.path, 30)
    assert left(any_world) == [10, 20, 30]
    snapshots.delete_before(any_world.fs, any_world.path, 20)
    assert left(any_world) == [20, 30]


@pytest.mark.parametrize(
    ("bases", "kept"),
    [
        ([0, 10, 30], [10, 30, 50]),  # the largest lies behind the last segment: a clean stop left it
        ([0, 10, 50], [10, 50]),
        ([0, 60], []),
        ([0], [50]),
        ([], [50]),
    ],
)
def test_strays_go_but_for_the_largest_behind_the_last_segment(
    any_world: World, bases: list[int], kept: list[int]
) -> None:
    take(any_world, 10, 20, 30, 40, 50)
    taken = snapshots.offsets(any_world.fs, any_world.path)
    assert snapshots.delete_strays(any_world.fs, any_world.path, bases, taken) == kept
    assert left(any_world) == kept


def test_only_snapshots_without_a_marker_count(any_world: World) -> None:
    take(any_world, 10)
    for name in (
        "00000000000000000020.snapshot.deleted",
        "00000000000000000030.log",
        "leader-epoch-checkpoint",
    ):
        any_world.write(name, b"x")
    assert left(any_world) == [10]
    assert load(any_world, 0, 99).end_offset == 10
