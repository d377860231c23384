"""The tables of ottla.db, as the steps that led to them: a file of any older version is brought up to date."""

from __future__ import annotations

import sqlite3

from ottla.errors import StorageError

APPLICATION_ID = 0x6F74746C  # "ottl": a database without it is somebody else's

# Step n brings a file from version n to n + 1. Steps are only ever added. Version 0 is an empty file.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE cluster (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            cluster_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            next_producer_id INTEGER NOT NULL
        ) STRICT""",
        """CREATE TABLE broker (
            node_id INTEGER PRIMARY KEY,
            host TEXT NOT NULL,
            port INTEGER NOT NULL,
            rack TEXT,
            epoch INTEGER NOT NULL
        ) STRICT""",
        """CREATE TABLE topic (
            name TEXT PRIMARY KEY,
            topic_id BLOB NOT NULL UNIQUE
        ) STRICT, WITHOUT ROWID""",
        # Replicas and ISR are node ids separated by commas.
        """CREATE TABLE partition (
            topic TEXT NOT NULL REFERENCES topic ON DELETE CASCADE,
            number INTEGER NOT NULL,
            leader INTEGER NOT NULL,
            replicas TEXT NOT NULL,
            isr TEXT NOT NULL,
            leader_epoch INTEGER NOT NULL,
            partition_epoch INTEGER NOT NULL,
            PRIMARY KEY (topic, number)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE topic_config (
            topic TEXT NOT NULL REFERENCES topic ON DELETE CASCADE,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (topic, key)
        ) STRICT, WITHOUT ROWID""",
        # Node -1 stands for all brokers.
        """CREATE TABLE broker_config (
            node_id INTEGER NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (node_id, key)
        ) STRICT, WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE group_config (
            group_id TEXT NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (group_id, key)
        ) STRICT, WITHOUT ROWID""",
    ),
)


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring the file up to date, in one transaction. To be called inside one that may write."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (version or application or tables):
        raise StorageError(f"{path} is a database of another program; move it away")
    if version > len(MIGRATIONS):
        raise StorageError(
            f"{path} was written by a newer ottla (version {version} of the file, this one knows "
            f"{len(MIGRATIONS)}); install that ottla or a later one"
        )
    for step in MIGRATIONS[version:]:
        for statement in step:
            db.execute(statement)
    if version < len(MIGRATIONS):
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
