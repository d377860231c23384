"""The SQLite store: several processes on one file, kill -9, files that are newer, strange or damaged."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ottla.cluster import sqlite_schema
from ottla.cluster.outcome import Outcome
from ottla.cluster.sqlite import SqliteStore
from ottla.errors import StorageError
from tests.cluster.making import make, register

# Makes topics with a prefix as fast as it can, and says so after each; also takes producer ids.
HAMMER = """
import sys
from ottla.cluster.sqlite import SqliteStore
from tests.cluster.making import make
path, prefix, count = sys.argv[1:]
store = SqliteStore(path, "x")
store.open()
for number in range(int(count)):
    image, outcome = store.update(make(f"{prefix}-{number}"))
    assert outcome.results[0].ok, outcome
    print(prefix, number, store.allocate_producer_ids(), flush=True)
"""


def hammer(path: Path, prefix: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HAMMER, str(path), prefix, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def new_store(path: Path) -> SqliteStore:
    store = SqliteStore(str(path), "cluster")
    store.open()
    return store


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ottla.db"
    store = new_store(path)
    store.update(register(1))
    hammers = [hammer(path, prefix, 40) for prefix in ("a", "b")]
    said = [process.communicate()[0].split("\n")[:-1] for process in hammers]
    assert [process.returncode for process in hammers] == [0, 0]
    image = store.load()
    assert set(image.topics) == {f"{prefix}-{number}" for prefix in "ab" for number in range(40)}
    assert image.revision == 81
    assert len(image.topic_names) == 80
    blocks = [int(line.split()[2]) for lines in said for line in lines]
    assert sorted(blocks) == list(range(0, 80_000, 1000))
    store.close()


def test_two_processes_can_make_the_file_at_the_same_moment(tmp_path: Path) -> None:
    paths = [tmp_path / str(turn) for turn in range(8)]
    for path in paths:
        errors: list[BaseException] = []
        barrier = threading.Barrier(3)

        def open_it(
            path: Path = path, errors: list[BaseException] = errors, barrier: threading.Barrier = barrier
        ) -> None:
            store = SqliteStore(str(path), "cluster")
            barrier.wait()
            try:
                store.open()
                store.close()
            except BaseException as error:  # noqa: BLE001 - told below
                errors.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []


@pytest.mark.parametrize("after", [1, 7, 20])
def test_an_acknowledged_change_survives_kill_9(tmp_path: Path, after: int) -> None:
    path = tmp_path / "ottla.db"
    store = new_store(path)
    store.update(register(1))
    process = hammer(path, "t", 100_000)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    acknowledged = [line for line in said if line.endswith("\n")]
    image = store.load()
    # The change that was under way may be there, whole; nothing behind it can.
    assert len(image.topics) - len(acknowledged) in (0, 1)
    assert set(image.topics) == {f"t-{number}" for number in range(len(image.topics))}
    assert all(len(topic.partitions) == 2 for topic in image.topics.values())
    assert image.revision == 1 + len(image.topics)
    last_block = int(acknowledged[-1].split()[2])
    assert store.allocate_producer_ids() > last_block
    store.close()


def test_the_file_is_written_ahead_and_synced(tmp_path: Path) -> None:
    store = new_store(tmp_path / "ottla.db")
    db = store._connection
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert db.execute("PRAGMA user_version").fetchone() == (len(sqlite_schema.MIGRATIONS),)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


def test_a_file_of_a_newer_ottla_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "ottla.db"
    new_store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StorageError, match=r"newer ottla \(version 99 .* install that ottla"):
        new_store(path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (99,)
    db.close()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ottla.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name)")
    db.close()
    with pytest.raises(StorageError, match="another program"):
        new_store(path)


def test_an_older_file_is_brought_up_to_date_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ottla.db"
    store = new_store(path)
    store.update(register(1))
    image, _ = store.update(make("a"))
    store.close()
    later = (*sqlite_schema.MIGRATIONS, ("CREATE TABLE later (x)", "INSERT INTO later VALUES (5)"))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", later)
    store = new_store(path)
    assert store.load() == image
    assert store._connection.execute("SELECT x FROM later").fetchone() == (5,)
    assert store._connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    store.close()


@pytest.mark.parametrize("size", [10, 5000])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, size: int) -> None:
    path = tmp_path / "ottla.db"
    path.write_bytes(b"not a database, " * (size // 16 + 1))
    with pytest.raises(StorageError, match=r"is damaged .*ottla adopt"):
        new_store(path)


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere is not there; make it, or check the path"):
        new_store(tmp_path / "nowhere" / "ottla.db")


def test_a_failed_write_is_not_in_the_image(tmp_path: Path) -> None:
    path = tmp_path / "ottla.db"
    store = new_store(path)
    before, _ = store.update(register(1))
    store._connection.execute(f"PRAGMA max_page_count = {path.stat().st_size // 4096 + 20}")
    names = [f"a-{number}" for number in range(2000)]

    def many(image: object) -> Outcome:
        return make(*names)(before)

    with pytest.raises(StorageError, match="disk is full"):
        store.update(many)
    assert store.load() == before
    after, _ = store.update(make("b"))
    assert list(after.topics) == ["b"]
    store.close()
