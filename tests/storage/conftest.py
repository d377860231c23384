"""Fixtures of the storage tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.fs import RealFileSystem
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import World


@pytest.fixture
def runtime() -> SimulatedRuntime:
    return SimulatedRuntime()


@pytest.fixture
def world(runtime: SimulatedRuntime) -> World:
    """On a simulated disk."""
    fs = SimulatedDisk(now_ms=runtime.now_ms)
    fs.make_dir("/data")
    return World(fs, "/data", runtime)


@pytest.fixture(params=["simulated", "real"])
def any_world(request: pytest.FixtureRequest, runtime: SimulatedRuntime, tmp_path: Path) -> World:
    """On both kinds of disk."""
    if request.param == "real":
        return World(RealFileSystem(), str(tmp_path), runtime)
    fs = SimulatedDisk(now_ms=runtime.now_ms)
    fs.make_dir("/data")
    return World(fs, "/data", runtime)
