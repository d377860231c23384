"""Leader epochs: what is noted, what an epoch's end offset is, and what truncation leaves."""

from __future__ import annotations

import pytest

from ottla.errors import CorruptCheckpointError
from ottla.storage.log.leader_epochs import LeaderEpochs
from tests.storage.world import World


def make(world: World, *entries: tuple[int, int]) -> LeaderEpochs:
    world.fs.make_dir(world.path)
    epochs = LeaderEpochs(world.fs, f"{world.path}/leader-epoch-checkpoint")
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_nothing_is_known_at_first(world: World) -> None:
    epochs = make(world)
    assert epochs.latest_epoch == -1
    assert epochs.end_offset_for(0, 10) == (-1, -1)
    assert epochs.epoch_for(5) == -1


def test_epochs_survive_in_their_file(any_world: World) -> None:
    make(any_world, (2, 6), (3, 8))
    again = make(any_world)
    assert again.entries == [(2, 6), (3, 8)]
    assert again.latest_epoch == 3


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),  # undefined
        (1, (1, 11)),  # below the first: its start
        (2, (2, 12)),
        (3, (3, 13)),
        (4, (3, 13)),  # wrote nothing: the one below, up to the next
        (5, (5, 21)),  # the latest ends with the log
        (6, (-1, -1)),  # above the last
    ],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(
    world: World, asked: int, answer: tuple[int, int]
) -> None:
    assert make(world, (2, 11), (3, 12), (5, 13)).end_offset_for(asked, 21) == answer


@pytest.mark.parametrize(("offset", "epoch"), [(5, -1), (6, 2), (8, 2), (9, 4), (1000, 4)])
def test_the_epoch_of_an_offset(world: World, offset: int, epoch: int) -> None:
    assert make(world, (2, 6), (4, 9)).epoch_for(offset) == epoch


def test_the_first_start_offset_of_an_epoch_stays(world: World) -> None:
    assert make(world, (2, 6), (2, 7), (2, 8)).entries == [(2, 6)]


def test_epoch_0_is_an_epoch(world: World) -> None:
    assert make(world, (0, 0), (1, 4)).entries == [(0, 0), (1, 4)]


def test_a_lower_start_of_the_latest_epoch_replaces_it(world: World) -> None:
    assert make(world, (1, 2), (2, 6), (2, 4)).entries == [(1, 2), (2, 4)]


def test_truncating_nothing_is_harmless(world: World) -> None:
    epochs = make(world)
    epochs.truncate_from_start(5)
    epochs.truncate_from_end(5)
    epochs.clear()
    assert epochs.entries == []
    assert world.names() == []  # nothing to say, nothing written


def test_an_unknown_epoch_is_not_noted(world: World) -> None:
    assert make(world, (-1, 5)).entries == []


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ((3, 5), [(3, 5)]),  # an offset before all: the log was cut and written anew
        ((4, 8), [(2, 6), (4, 8)]),
        ((1, 20), [(1, 20)]),  # an older epoch removes those above it
        ((3, 6), [(3, 6)]),  # the same start: the epoch before wrote nothing
        ((3, 7), [(2, 6), (3, 7)]),
        ((2, 8), [(2, 8)]),
    ],
)
def test_entries_always_grow_in_both_columns(
    world: World, new: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    epochs = make(world, (2, 6), (3, 9), new)
    assert epochs.entries == expected
    assert make(world).entries == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(12, [(2, 6), (3, 8), (4, 11)]), (11, [(2, 6), (3, 8)]), (9, [(2, 6), (3, 8)]), (6, [])],
)
def test_truncation_from_the_end_forgets_epochs_that_begin_there(
    world: World, offset: int, expected: list[tuple[int, int]]
) -> None:
    epochs = make(world, (2, 6), (3, 8), (4, 11))
    epochs.truncate_from_end(offset)
    assert epochs.entries == expected
    assert epochs.latest_epoch == (expected[-1][0] if expected else -1)
    assert make(world).entries == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (5, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (7, [(2, 7), (3, 8), (4, 11)]),
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),
        (16, [(4, 16)]),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_that_holds_the_offset(
    world: World, offset: int, expected: list[tuple[int, int]]
) -> None:
    epochs = make(world, (2, 6), (3, 8), (4, 11))
    epochs.truncate_from_start(offset)
    assert epochs.entries == expected
    assert make(world).entries == expected


def test_clearing_forgets_all_also_on_disk(world: World) -> None:
    epochs = make(world, (2, 6))
    epochs.clear()
    assert epochs.latest_epoch == -1
    assert make(world).entries == []


def test_noted_epochs_are_written_only_when_asked(world: World) -> None:
    epochs = make(world)
    assert epochs.note(1, 5)
    assert not epochs.note(1, 6)
    assert make(world).entries == []
    epochs.write()
    assert make(world).entries == [(1, 5)]


def test_a_damaged_file_is_refused(world: World) -> None:
    world.write("leader-epoch-checkpoint", b"0\n2\n1 2\n")
    with pytest.raises(CorruptCheckpointError):
        make(world)
