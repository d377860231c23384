"""The store of a cluster that is stopped: who may open it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cluster.sqlite import SqliteStore, is_open_elsewhere
from ottla.cluster.stopped import stopped_store
from ottla.errors import LogDirLockedError, StorageError
from ottla.storage.fs import RealFileSystem


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """As two brokers leave it."""
    store = SqliteStore(str(tmp_path / "ottla.db"), "some-cluster")
    store.open()
    store.close()
    for name in ("node.1", "node.2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("version=1\n")
    return tmp_path


def test_the_store_is_the_one_that_was_left(data: Path) -> None:
    with stopped_store(RealFileSystem(), f"{data}/") as store:
        assert store.load().cluster_id == "some-cluster"


@pytest.mark.parametrize("node", ["node.1", "node.2"])
def test_no_broker_can_start_meanwhile(data: Path, node: str) -> None:
    lock = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [
        sys.executable,
        "-c",
        lock,
        f"{data}/{node}/.lock",
    ]  # a process is not kept out by its own locks
    with stopped_store(RealFileSystem(), str(data)):
        assert "BlockingIOError" in subprocess.run(command, capture_output=True, text=True).stderr
    assert subprocess.run(command).returncode == 0


def test_a_store_that_is_open_is_noticed(data: Path) -> None:
    other = SqliteStore(str(data / "ottla.db"), "")
    other.open()
    other.load()
    assert is_open_elsewhere(str(data / "ottla.db"))
    with (
        pytest.raises(LogDirLockedError, match=r"ottla\.db is in use"),
        stopped_store(RealFileSystem(), str(data)),
    ):
        pass
    other.close()
    assert not is_open_elsewhere(str(data / "ottla.db"))


def test_a_store_that_is_damaged_is_said_to_be(data: Path) -> None:
    (data / "ottla.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="is damaged"), stopped_store(RealFileSystem(), str(data)):
        pass


def test_nothing_is_made_where_there_is_no_store(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"there is no ottla\.db"),
        stopped_store(RealFileSystem(), str(tmp_path)),
    ):
        pass
    assert not list(tmp_path.iterdir())
