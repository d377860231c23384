"""Full garbage collections happen when the broker is idle, not when clients have made enough objects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ottla.metrics import TurnTimes
from ottla.server.garbage import Garbage


class _Node:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def full_collections() -> Iterator[list[int]]:
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(1)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def _grow() -> list[list[int]]:
    return [[] for _ in range(400_000)]


def test_growth_does_not_make_the_interpreter_look_at_everything(full_collections: list[int]) -> None:
    garbage = Garbage(TurnTimes())
    garbage.take_over()
    try:
        full_collections.clear()
        kept = _grow()
        assert not full_collections
    finally:
        garbage.give_back()
    assert gc.get_threshold()[2] < 1000
    assert kept


def test_cycles_are_collected_when_the_loop_is_idle(full_collections: list[int]) -> None:
    times = TurnTimes()
    garbage = Garbage(times)
    garbage.take_over()
    try:
        node = weakref.ref(_Node())
        kept = _grow()
        full_collections.clear()
        times.total_ns += 10**18  # a busy loop
        garbage.look()
        assert not full_collections
        garbage.look()
        assert not full_collections  # not in the first minute
        garbage._due_ns = 0
        garbage.look()
        assert len(full_collections) == 1
        assert node() is None
        kept += _grow()
        garbage.look()  # too soon
        assert len(full_collections) == 1
    finally:
        garbage.give_back()
