"""A segment whose offsets overflow is split, however the log was stopped, and a crash at any point is safe."""

from __future__ import annotations

import pytest

from ottla.storage.layout import segment_file
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import World, append, batch, marker, offsets

FAR = 100 + MAX_RELATIVE_OFFSET
OFFSETS = [100, 101, FAR, FAR + 1, FAR + 2, FAR + 4, 2 * FAR, 2 * FAR + 1]
AFTER = 3 * FAR
BASES = [100, FAR + 1, 2 * FAR, AFTER]


def write_overflowing(world: World, *, with_indexes: bool = False) -> None:
    """One segment with offsets over three times its range, and a second segment behind it."""
    data = (
        batch(
            2,
            base_offset=100,
            leader_epoch=0,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        + batch(base_offset=FAR, leader_epoch=0)
        + batch(base_offset=FAR + 1, leader_epoch=1)
        + batch(2, base_offset=FAR + 2, leader_epoch=1, offset_deltas=[0, 2])
        + marker(1, base_offset=2 * FAR, leader_epoch=1)
        + batch(base_offset=2 * FAR + 1, leader_epoch=1)
    )
    world.write(segment_file(100, ".log"), data)
    world.write(segment_file(AFTER, ".log"), batch(base_offset=AFTER, leader_epoch=1))
    if with_indexes:
        for base in (100, AFTER):
            world.write(segment_file(base, ".index"), b"")
            world.write(segment_file(base, ".timeindex"), b"")


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("with_indexes", [False, True])
def test_an_overflowing_segment_is_split(any_world: World, clean: bool, with_indexes: bool) -> None:
    write_overflowing(any_world, with_indexes=with_indexes)
    log = any_world.load(clean=clean)
    assert log.segments.bases == BASES
    assert offsets(log) == [*OFFSETS, AFTER]
    assert log.epochs.entries == [(0, 100), (1, FAR + 1)]
    assert [segment.txn_index.entries for segment in log.segments] == [
        [],
        [],
        [(1, 100, 2 * FAR, 2 * FAR + 1)],
        [],
    ]
    assert append(log, epoch=2).first_offset == AFTER + 1
    log.close()
    assert not [name for name in any_world.names() if name.endswith((".deleted", ".swap", ".cleaned"))]
    assert offsets(any_world.load(clean=True)) == [*OFFSETS, AFTER, AFTER + 1]


def test_the_active_segment_can_be_split_too(any_world: World) -> None:
    any_world.write(
        segment_file(0, ".log"), batch(base_offset=0) + batch(base_offset=MAX_RELATIVE_OFFSET + 1)
    )
    log = any_world.load()
    assert log.segments.bases == [0, 1]
    assert append(log).first_offset == MAX_RELATIVE_OFFSET + 2


def test_a_torn_tail_of_an_overflowing_segment_is_cut(any_world: World) -> None:
    any_world.write(
        segment_file(0, ".log"),
        batch(base_offset=0) + batch(2, base_offset=MAX_RELATIVE_OFFSET) + batch()[:-3],
    )
    log = any_world.load()
    assert offsets(log) == [0, MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1]


def test_a_power_cut_during_a_split_loses_nothing() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    world = World(disk, "/data", SimulatedRuntime())
    write_overflowing(world)
    history = disk.record()
    world.load()
    states = list(crash_states(history, seed=3, samples=0, points=range(0, len(history.operations), 2)))
    assert len(states) > 50
    for state in states:
        again = World(state.disk(), "/data", SimulatedRuntime()).load()
        assert offsets(again) == [*OFFSETS, AFTER], state.describe()
        assert again.segments.bases == BASES, state.describe()
