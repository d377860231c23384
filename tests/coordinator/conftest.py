"""Fixtures of the coordinators' tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.world import World
from tests.coordinator.grouping import find

MakeWorld = Callable[..., World]


@pytest.fixture
def data() -> Iterator[str]:
    """A directory in memory, where there is one: the disk's syncs would be most of the time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        yield directory


@pytest.fixture
def make_world(data: str) -> Iterator[MakeWorld]:
    """Brokers with settings of their own, a topic `t` and a coordinator that is ready."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        world = World(f"{data}/{len(made)}", offsets_topic_num_partitions="3", **settings)
        made.append(world)
        world.make_topic("t", 3)
        find(world)
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()
