"""The metadata of a cluster none of whose brokers runs: for changing settings that keep a broker from being reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cluster.adopt import locked
from ottla.cluster.sqlite import DB_FILE, SqliteStore, is_open_elsewhere
from ottla.errors import LogDirLockedError, StorageError
from ottla.storage import layout
from ottla.storage.fs import FileSystem


@contextmanager
def stopped_store(fs: FileSystem, data: str) -> Iterator[SqliteStore]:
    """The store in a data directory, open; no broker can start there meanwhile. LogDirLockedError if one runs."""
    data = data.rstrip("/") or "/"
    path = f"{data}/{DB_FILE}"
    if not fs.exists(path):
        raise StorageError(
            f"{data} is no data directory of ottla: there is no {DB_FILE}; give what `ottla serve` has as --data, or "
            "the first of its log.dirs"
        )
    with locked(fs, _log_dirs(fs, data)):
        if is_open_elsewhere(path):  # its broker keeps the logs in other directories
            raise LogDirLockedError(f"{path} is in use by another process")
        store = SqliteStore(path, cluster_id="")
        store.open()
        try:
            yield store
        finally:
            store.close()


def _log_dirs(fs: FileSystem, data: str) -> list[str]:
    """Those that lie here: the directory itself, or one for each of several brokers."""
    nodes = [f"{data}/{name}" for name in fs.list_dir(data) if name.startswith("node.")]
    return [path for path in (data, *sorted(nodes)) if fs.exists(f"{path}/{layout.META_PROPERTIES}")]
