"""Directories that the jobs work on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.jobs.damaged import make


@pytest.fixture(scope="session")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two data directories with every kind of damage; not to be changed."""
    return make(tmp_path_factory.mktemp("damaged"), seed=6)
