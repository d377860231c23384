"""Removing what is left of a deleted partition: its files, and nothing that lies behind a link or in a folder."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from ottla.config import BrokerConfig
from ottla.errors import StorageError
from ottla.names import TopicPartition
from ottla.storage.fs import RealFileSystem
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.steps import apply_retention

MARKED = f"a-0.{'0' * 32}-delete"


def opened(path: Path) -> LogManager:
    manager = LogManager(RealFileSystem(), SimulatedRuntime(), BrokerConfig(log_dirs=(str(path),)))
    manager.open()
    return manager


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(b"not the broker's")
    (directory / "00000000000000000000.index.deleted").write_bytes(b"nor this")
    return directory


def test_a_link_that_is_marked_for_deletion_is_not_followed(
    tmp_path: Path, outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = sorted(os.listdir(outside))
    data = tmp_path / "data"
    data.mkdir()
    (data / MARKED).symlink_to(outside)
    manager = opened(data)
    with caplog.at_level(logging.WARNING):
        apply_retention(manager)
    assert sorted(os.listdir(outside)) == before
    assert f"{data}/{MARKED} is a symbolic link" in caplog.text
    assert manager.online_dirs
    manager.close()


def test_a_folder_inside_is_kept_and_the_log_directory_stays_online(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / MARKED / "mine").mkdir(parents=True)
    (tmp_path / MARKED / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / MARKED / "mine" / "note").write_text("keep")
    for _ in range(2):
        manager = opened(tmp_path)
        with caplog.at_level(logging.WARNING):
            apply_retention(manager)
        assert manager.online_dirs
        manager.close()
    assert os.listdir(tmp_path / MARKED) == ["mine"]
    assert (tmp_path / MARKED / "mine" / "note").read_text() == "keep"
    assert "it holds a folder (mine)" in caplog.text


def test_a_partition_directory_that_is_a_link_is_not_loaded_and_not_written_through(
    tmp_path: Path, outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = {name: (outside / name).read_bytes() for name in os.listdir(outside)}
    data = tmp_path / "data"
    data.mkdir()
    (data / "a-0").symlink_to(outside)
    with caplog.at_level(logging.ERROR):
        manager = opened(data)
    assert f"{data}/a-0 is a symbolic link" in caplog.text
    assert manager.get(TopicPartition("a", 0)) is None
    with pytest.raises(StorageError, match="symbolic link"):
        manager.get_or_create(TopicPartition("a", 0))
    assert manager.online_dirs
    manager.close()
    assert {name: (outside / name).read_bytes() for name in os.listdir(outside)} == before
