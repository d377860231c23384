"""Fixtures of the handlers' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[MakeWorld]:
    """Brokers with settings of their own."""
    made: list[World] = []

    def make(*, dirs: int = 1, **settings: Any) -> World:
        paths = [str(tmp_path / f"data-{len(made)}-{number}") for number in range(dirs)]
        made.append(World(*paths, **settings))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """A broker with one log directory and Kafka's defaults."""
    return make_world()
