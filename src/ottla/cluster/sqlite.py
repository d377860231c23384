"""The metadata store of one machine: a SQLite file that all broker processes on it share.

A change is one transaction: take the write lock, read the file again if another process has changed it, run the
command, write the rows that differ, count the revision up, commit with fsync (WAL, synchronous=FULL). After kill -9
or a power cut a change is there whole or not at all, and there if it was acknowledged.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ottla.cluster.image import BrokerInfo, ClusterImage, PartitionInfo, TopicInfo
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.sqlite_schema import migrate
from ottla.cluster.store import PRODUCER_ID_BLOCK
from ottla.errors import DiskFullError, StorageError

DB_FILE = "ottla.db"
DB_FILES = (DB_FILE, f"{DB_FILE}-wal", f"{DB_FILE}-shm")
_BUSY_TIMEOUT_MS = 30_000
_ALL_BROKERS = -1


class SqliteStore:
    """A `MetadataStore` in one file. The cluster's id and the first producer id are for a file that is made now."""

    def __init__(self, path: str, cluster_id: str, first_producer_id: int = 0) -> None:
        self._path = path
        self._new = (cluster_id, first_producer_id)
        self._db: sqlite3.Connection | None = None
        self._image: ClusterImage | None = None

    def open(self) -> None:
        with self._told():
            self._db = sqlite3.connect(self._path, isolation_level=None)
            try:
                self._prepare(self._db)
            except BaseException:
                self.close()
                raise

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        with self._transaction() as transaction:
            migrate(transaction, self._path)
            transaction.execute("INSERT INTO cluster VALUES (1, ?, 0, ?) ON CONFLICT DO NOTHING", self._new)

    def load(self) -> ClusterImage:
        with self._told(), self._transaction("DEFERRED") as db:
            self._image = _read_image(db)
        return self._image

    def update(self, command: Command) -> tuple[ClusterImage, Outcome]:
        with self._told(), self._transaction() as db:
            image = self._image
            if image is None or image.revision != _revision(db):
                image = _read_image(db)
            outcome = command(image)
            if outcome.image is not image:
                after = replace(outcome.image, revision=image.revision + 1)
                _write_changes(db, image, after)
                image = after
        self._image = image
        return image, outcome

    def revision(self) -> int:
        with self._told():
            return _revision(self._connection)

    def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> int:
        with self._told(), self._transaction() as db:
            (first,) = db.execute("SELECT next_producer_id FROM cluster").fetchone()
            db.execute("UPDATE cluster SET next_producer_id = ?", (first + count,))
        return int(first)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise StorageError(f"{self._path} is not open")
        return self._db

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        db = self._connection
        db.execute(f"BEGIN {kind}")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors, as ours that say which file and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            kind = DiskFullError if _primary_code(error) == sqlite3.SQLITE_FULL else StorageError
            raise kind(_explain(self._path, error)) from error


def is_open_elsewhere(path: str) -> bool:
    """Whether another process has the file open. Only who is alone with it may leave WAL, which `open` returns to."""
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        return _primary_code(error) == sqlite3.SQLITE_BUSY
    except sqlite3.DatabaseError:
        return False  # damaged: `open` says how
    finally:
        db.close()
    return False


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _explain(path: str, error: sqlite3.Error) -> str:
    primary = _primary_code(error)
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return (
            f"{path} is damaged ({error}): put back a copy of it, or move it and its -wal and -shm files away and "
            "run `ottla adopt` to make it anew from the log directories"
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"{path} has been locked by another process for {_BUSY_TIMEOUT_MS // 1000} s; stop what uses it, "
            "such as an open sqlite3"
        )
    if primary == sqlite3.SQLITE_FULL:
        return f"{path} cannot be written: the disk is full; free some space, then try again"
    if primary == sqlite3.SQLITE_CANTOPEN:
        return f"{path} cannot be opened: {_why_not_opened(path)}"
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return f"{path} cannot be written ({error}); run as the user who owns it, on a disk that is not read-only"
    if primary == sqlite3.SQLITE_IOERR:
        return f"{path} cannot be read or written ({error}); the disk may be full or failing, see the system's log"
    return f"{path}: {error}"


def _why_not_opened(path: str) -> str:
    """SQLite does not say."""
    directory = Path(path).parent
    if Path(path).is_dir():
        return "it is a directory, and a file is needed; move it away"
    if not directory.is_dir():
        return f"{directory} is not there; make it, or check the path"
    if not os.access(directory, os.W_OK | os.X_OK):
        return (
            f"this user may not write to {directory}, or its disk is read-only; choose another user or place"
        )
    return f"check who may write to it and to {directory}, and how many files are open"


def _use_wal(db: sqlite3.Connection) -> None:
    """Another process that does the same at this moment makes it fail at once; waiting for a lock waits for that."""
    for _ in range(100):
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        else:
            if mode != "wal":
                raise StorageError(f"the file system cannot hold ottla.db: SQLite chose mode {mode}, not wal")
            return


# -- rows and images


def _revision(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT revision FROM cluster").fetchone()[0])


def _read_image(db: sqlite3.Connection) -> ClusterImage:
    cluster_id, revision = db.execute("SELECT cluster_id, revision FROM cluster").fetchone()
    brokers = db.execute("SELECT node_id, host, port, rack, epoch FROM broker")
    partitions: dict[str, list[PartitionInfo]] = defaultdict(list)
    for topic, leader, replicas, isr, leader_epoch, partition_epoch in db.execute(
        "SELECT topic, leader, replicas, isr, leader_epoch, partition_epoch FROM partition ORDER BY topic, number"
    ):
        info = PartitionInfo(leader, _nodes(replicas), _nodes(isr), leader_epoch, partition_epoch)
        partitions[topic].append(info)
    configs: dict[str, dict[str, str]] = defaultdict(dict)
    for topic, key, value in db.execute("SELECT topic, key, value FROM topic_config"):
        configs[topic][key] = value
    topics = {}
    for name, topic_id in db.execute("SELECT name, topic_id FROM topic"):
        topic_uuid = uuid.UUID(bytes=topic_id)
        topics[name] = TopicInfo(name, topic_uuid, tuple(partitions[name]), configs.get(name, {}))
    broker_configs: dict[int | None, dict[str, str]] = {}
    for node_id, key, value in db.execute("SELECT node_id, key, value FROM broker_config"):
        broker_configs.setdefault(None if node_id == _ALL_BROKERS else node_id, {})[key] = value
    group_configs: dict[str, dict[str, str]] = {}
    for group_id, key, value in db.execute("SELECT group_id, key, value FROM group_config"):
        group_configs.setdefault(group_id, {})[key] = value
    return ClusterImage(
        cluster_id=cluster_id,
        revision=revision,
        brokers={row[0]: BrokerInfo(*row) for row in brokers},
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        broker_configs=broker_configs,
        group_configs=group_configs,
    )


def _nodes(text: str) -> tuple[int, ...]:
    return tuple(int(node_id) for node_id in text.split(",")) if text else ()


def _write_changes(db: sqlite3.Connection, old: ClusterImage, new: ClusterImage) -> None:
    """Only what differs: an image is mostly the one before."""
    for name in old.topics.keys() - new.topics.keys():
        db.execute("DELETE FROM topic WHERE name = ?", (name,))
    for name, topic in new.topics.items():
        before = old.topics.get(name)
        if before is not topic:
            _write_topic(db, before, topic)
    for node_id in old.brokers.keys() - new.brokers.keys():
        db.execute("DELETE FROM broker WHERE node_id = ?", (node_id,))
    for broker in new.brokers.values():
        if old.brokers.get(broker.node_id) != broker:
            row = (broker.node_id, broker.host, broker.port, broker.rack, broker.epoch)
            db.execute("INSERT OR REPLACE INTO broker VALUES (?, ?, ?, ?, ?)", row)
    for scope in old.broker_configs.keys() | new.broker_configs.keys():
        kept = new.broker_configs.get(scope, {})
        if old.broker_configs.get(scope, {}) != kept:
            node_id = _ALL_BROKERS if scope is None else scope
            db.execute("DELETE FROM broker_config WHERE node_id = ?", (node_id,))
            rows = [(node_id, key, value) for key, value in kept.items()]
            db.executemany("INSERT INTO broker_config VALUES (?, ?, ?)", rows)
    _write_group_configs(db, old, new)
    db.execute("UPDATE cluster SET cluster_id = ?, revision = ?", (new.cluster_id, new.revision))


def _write_group_configs(db: sqlite3.Connection, old: ClusterImage, new: ClusterImage) -> None:
    for group_id in old.group_configs.keys() | new.group_configs.keys():
        kept = new.group_configs.get(group_id, {})
        if old.group_configs.get(group_id, {}) != kept:
            db.execute("DELETE FROM group_config WHERE group_id = ?", (group_id,))
            rows = [(group_id, key, value) for key, value in kept.items()]
            db.executemany("INSERT INTO group_config VALUES (?, ?, ?)", rows)


def _write_topic(db: sqlite3.Connection, old: TopicInfo | None, new: TopicInfo) -> None:
    if old is not None and old.topic_id != new.topic_id:
        db.execute("DELETE FROM topic WHERE name = ?", (old.name,))
        old = None
    if old is None:
        db.execute("INSERT INTO topic VALUES (?, ?)", (new.name, new.topic_id.bytes))
        old = replace(new, partitions=(), config={})
    if old.config != new.config:
        db.execute("DELETE FROM topic_config WHERE topic = ?", (new.name,))
        settings = [(new.name, key, value) for key, value in new.config.items()]
        db.executemany("INSERT INTO topic_config VALUES (?, ?, ?)", settings)
    known = dict(enumerate(old.partitions))
    changed = [(i, p) for i, p in enumerate(new.partitions) if known.get(i) != p]
    rows = [(new.name, number, *_partition_columns(partition)) for number, partition in changed]
    db.executemany("INSERT OR REPLACE INTO partition VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def _partition_columns(partition: PartitionInfo) -> tuple[int, str, str, int, int]:
    replicas, isr = (",".join(map(str, nodes)) for nodes in (partition.replicas, partition.isr))
    return partition.leader, replicas, isr, partition.leader_epoch, partition.partition_epoch
