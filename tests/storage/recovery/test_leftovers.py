"""What a crash leaves of deletions and swaps is finished or undone, at every step of a swap."""

from __future__ import annotations

import pytest

from ottla.config import LogConfig
from ottla.records.record import Record
from ottla.storage.layout import segment_file
from ottla.storage.log.segment import Segment
from ottla.storage.log.swap import swap_in
from ottla.storage.recovery import leftovers
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import FaultyFileSystem
from tests.storage.world import SMALL, World, append, batch, marker, offsets, read_all

CONFIG = LogConfig(**{**SMALL, "index_interval_bytes": 0})
OLD = list(range(10))
NEW = [1, 3, 5, 6, 7, 8, 9]


def write_old(world: World) -> None:
    """Segments 0, 4 and 6 with one record a batch; an aborted transaction gives the first a .txnindex."""
    log = world.load(index_interval_bytes=0)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_follower(marker(1, base_offset=1, leader_epoch=0))
    for number in range(2, 10):
        if number in (4, 6):
            log.roll()
        append(log)
    log.close()


def write_new(world: World) -> list[Segment]:
    """Two cleaned segments in place of 0 and 4: offsets 1, 3 and 5, and nothing else of them."""
    new = []
    for base, kept in ((0, [1]), (2, [3, 5])):
        segment = Segment(world.fs, world.path, base, CONFIG, marker=".cleaned")
        segment.open_for_append(CONFIG)
        for offset in kept:
            data = batch(base_offset=offset, leader_epoch=0, value=b"cleaned")
            segment.append(data, len(data), offset, 1_700_000_000_000)
        segment.become_inactive()
        new.append(segment)
    return new


def old_segments(world: World) -> list[Segment]:
    return [Segment(world.fs, world.path, base, CONFIG) for base in (0, 4)]


def records(world: World) -> list[Record]:
    return read_all(world.load(may_have_gaps=True, recovery_point=10))


def is_old_or_new(found: list[Record]) -> bool:
    seen = [record.offset for record in found]
    if seen == OLD:
        return all(record.value != b"cleaned" for record in found)
    return seen == NEW and [record.offset for record in found if record.value == b"cleaned"] == [1, 3, 5]


def test_a_finished_swap_replaces_the_old_segments(any_world: World) -> None:
    write_old(any_world)
    swap_in(any_world.fs, any_world.path, write_new(any_world), old_segments(any_world))
    assert any_world.names(".log") == [segment_file(base, ".log") for base in (0, 2, 6)]
    assert any_world.names(".log.deleted") == [segment_file(base, ".log.deleted") for base in (0, 4)]
    found = records(any_world)
    assert [record.offset for record in found] == NEW
    assert any_world.names(".deleted") == []
    assert segment_file(0, ".txnindex") not in any_world.names()


def names_after_each_step() -> list[dict[str, bytes]]:
    """The directory's content after each change of a name in a swap."""
    disk = SimulatedDisk()
    disk.make_dir("/data")
    world = World(disk, "/data", SimulatedRuntime())
    write_old(world)
    new = write_new(world)
    seen: list[dict[str, bytes]] = []

    class Watched(FaultyFileSystem):
        def rename(self, source: str, target: str) -> None:
            super().rename(source, target)
            seen.append({name: world.read(name) for name in world.names()})

    watched = Watched(disk)
    old = old_segments(world)
    for segment in [*new, *old]:
        segment._fs = watched
    seen.append({name: world.read(name) for name in world.names()})
    swap_in(watched, world.path, new, old)
    return seen


STEPS = names_after_each_step()


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_crash_after_any_rename_leaves_the_old_or_the_new(world: World, step: int) -> None:
    for name, data in STEPS[step].items():
        world.write(name, data)
    found = records(world)
    assert is_old_or_new(found)
    complete = not any(name.endswith(".cleaned") for name in STEPS[step])
    assert ([record.offset for record in found] == NEW) == complete
    assert not [name for name in world.names() if name.endswith((".swap", ".cleaned", ".deleted"))]


def test_a_power_cut_during_a_swap_or_its_repair_leaves_the_old_or_the_new() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    world = World(disk, "/data", SimulatedRuntime())
    write_old(world)
    new, old = write_new(world), old_segments(world)
    history = disk.record()
    swap_in(disk, world.path, new, old)
    for state in crash_states(history, samples=1):
        after = state.disk()
        repair = after.record()
        found = records(World(after, "/data", SimulatedRuntime()))
        assert is_old_or_new(found), state.describe()
        for again in crash_states(repair, samples=0, points=range(0, len(repair.operations), 5)):
            assert records(World(again.disk(), "/data", SimulatedRuntime())) == found, (
                state.name,
                again.describe(),
            )


def test_deleted_and_temporary_files_go(any_world: World) -> None:
    write_old(any_world)
    names = any_world.names()
    for name in (
        segment_file(0, ".log", ".deleted"),
        segment_file(9, ".index", ".deleted"),
        segment_file(4, ".snapshot", ".tmp"),
    ):
        any_world.write(name, b"x")
    assert [
        segment.base_offset for segment in leftovers.clean_up(any_world.fs, any_world.path, CONFIG, 0)
    ] == [0, 4, 6]
    assert any_world.names() == names


def test_cleaned_files_of_an_unfinished_cleaning_go(any_world: World) -> None:
    write_old(any_world)
    write_new(any_world)
    assert [record.offset for record in records(any_world)] == OLD
    assert any_world.names(".cleaned") == []


def test_a_swap_index_without_its_log_is_put_in_place(any_world: World) -> None:
    write_old(any_world)
    good = any_world.read(segment_file(4, ".index"))
    any_world.fs.rename(
        f"{any_world.path}/{segment_file(4, '.index')}",
        f"{any_world.path}/{segment_file(4, '.index', '.swap')}",
    )
    leftovers.clean_up(any_world.fs, any_world.path, CONFIG, 0)
    assert any_world.read(segment_file(4, ".index")) == good
    assert offsets(any_world.load()) == OLD


def test_other_files_are_left_alone(any_world: World) -> None:
    write_old(any_world)
    for name in (
        "leader-epoch-checkpoint",
        "partition.metadata",
        "notes.txt",
        segment_file(0, ".log", ".quarantine"),
    ):
        any_world.write(name, any_world.read(name) if name in any_world.names() else b"version: 0")
    names = any_world.names()
    leftovers.clean_up(any_world.fs, any_world.path, CONFIG, 0)
    assert any_world.names() == names
