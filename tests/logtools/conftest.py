"""Directories that the tests look at, made once and copied for those that change them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import corpus
from tests.logtools.making import make_data_dir


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy data directory after a clean stop; not to be changed."""
    return make_data_dir(tmp_path_factory.mktemp("pristine") / "data")


@pytest.fixture
def data_dir(pristine: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    copy = tmp_path / "data"
    shutil.copytree(pristine, copy)
    return copy


@pytest.fixture
def log_dir(data_dir: Path) -> Path:
    return data_dir / "orders-0"


@pytest.fixture(scope="session")
def kafka_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The directories of real Kafka; not to be changed."""
    root = tmp_path_factory.mktemp("kafka")
    return {name: corpus.unpack(name, root) for name in corpus.NAMES}
