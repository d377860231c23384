"""Fixtures of the replica tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replica.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker with one log directory that leads partition 0 of topic t."""
    world = World(str(tmp_path / "data"))
    world.make_topic()
    yield world
    world.logs.abandon()
