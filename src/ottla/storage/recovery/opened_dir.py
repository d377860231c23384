"""Opening a log directory: its lock, its identity, what its checkpoints say, and which partitions lie in it."""

from __future__ import annotations

import base64
import errno
import logging
import posixpath
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.errors import (
    BrokerError,
    CorruptCheckpointError,
    InconsistentClusterIdError,
    LogDirLockedError,
    StorageError,
)
from ottla.names import TopicPartition
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout
from ottla.storage.building import import_journal
from ottla.storage.fs import File, FileSystem
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.witnesses import Witness

_logger = logging.getLogger(__name__)

_SHORT_BYTES = 1 << 20


class OpenedDir(NamedTuple):
    """A log directory that is in use, with what its files said when it was opened."""

    dir: LogDir
    lock: File
    clean: bool
    recovery_points: dict[TopicPartition, int] | None  # None: not known
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaned: dict[TopicPartition, int]  # up to where a log is compacted; kept up to date
    written_ms: int | None  # when the recovery points were written
    unreadable: list[str]  # checkpoints that are damaged

    def witness(self, partition: TopicPartition) -> Witness:
        """What the checkpoints said of a log."""
        return Witness(
            (self.recovery_points or {}).get(partition),
            self.high_watermarks.get(partition),
            self.start_offsets.get(partition),
            self.written_ms,
        )

    def is_short(self, name: str) -> bool:
        """Whether the log of a partition has hardly begun, as most of a large broker: to recover it takes no time."""
        try:
            path = f"{self.dir.path}/{name}/{layout.segment_file(0, layout.LOG)}"
            return self.dir.fs.size(path) < _SHORT_BYTES
        except OSError:
            return False

    def write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace one of the directory's offset checkpoints. On a full disk the old one stays: DiskFullError."""
        try:
            checkpoint.write_offsets(self.dir.fs, f"{self.dir.path}/{name}", offsets)
        except OSError as error:
            refusal = self.dir.refuse(error, f"writing {name}")
            if not self.dir.offline:
                raise refusal from error


class Contents(NamedTuple):
    """The directories that lie in a log directory."""

    partitions: list[str]
    doomed: list[str]  # those of deleted partitions, `-delete`
    futures: list[str]  # copies that were not finished, `-future`
    named: list[TopicPartition]  # the partitions of all of them, and of `-stray` ones


def open_dir(fs: FileSystem, path: str, identity: Mapping[str, str]) -> OpenedDir:
    """Lock the directory, made if need be, and read its checkpoints; `identity` is for one that has none yet."""
    _make_dir(fs, path)
    lock = fs.lock(f"{path}/{layout.LOCK}")
    if lock is None:
        raise LogDirLockedError(
            f"{path} is in use by {holder(fs, path)}; stop it, or choose another directory"
        )
    try:
        if not fs.exists(f"{path}/{layout.META_PROPERTIES}"):
            checkpoint.write_properties(fs, f"{path}/{layout.META_PROPERTIES}", identity)
        _check_identity(fs, path, identity)
        import_journal.undo(fs, path)
        clean = checkpoint.consume_clean_shutdown(fs, path)
        names = (layout.LOG_START_OFFSETS, layout.HIGH_WATERMARKS, layout.CLEANER_OFFSETS)
        unreadable: list[str] = []
        start_offsets, high_watermarks, cleaned = (
            _read_offsets(fs, f"{path}/{name}", unreadable) or {} for name in names
        )
        known = f"{path}/{layout.RECOVERY_POINTS}"
        recovery_points = _read_offsets(fs, known, unreadable)
        written_ms = fs.modified_ms(known) if recovery_points is not None else None
        return OpenedDir(
            LogDir(fs, path), lock, clean, recovery_points, start_offsets, high_watermarks, cleaned, written_ms,
            unreadable,
        )  # fmt: skip
    except (OSError, BrokerError):
        lock.close()
        raise


def holder(fs: FileSystem, path: str) -> str:
    """Who has a directory locked: an ottla writes its process id beside the lock, a Kafka does not."""
    try:
        pid = fs.read_bytes(f"{path}/{layout.PID_FILE}").strip()
    except OSError:
        pid = b""
    return (
        f"another process (pid {pid.decode()})" if pid.isdigit() else "another process, an ottla or a Kafka"
    )


def _check_identity(fs: FileSystem, path: str, expected: Mapping[str, str]) -> None:
    """Directories of two clusters, or of two brokers, must not be mixed."""
    found = checkpoint.read_properties(fs, f"{path}/{layout.META_PROPERTIES}")
    cluster, node = found.get("cluster.id"), found.get("node.id", found.get("broker.id"))
    if cluster not in (None, expected["cluster.id"]):
        raise InconsistentClusterIdError(
            f"{path} belongs to cluster {cluster}, this is {expected['cluster.id']}; choose another directory"
        )
    if node not in (None, "", expected["node.id"]):  # empty, where the file was cut
        raise InconsistentClusterIdError(
            f"{path} belongs to broker {node}, this is {expected['node.id']}; start it with --set node.id={node}"
        )


def _make_dir(fs: FileSystem, path: str) -> None:
    """Its name, and those of the directories made on the way, must be on disk before anything in it can be."""
    above = posixpath.dirname(path) or "."
    if not fs.exists(path):
        if not fs.exists(above):
            _make_dir(fs, above)
        fs.make_dir(path)
        fs.sync_dir(above)
    elif not fs.is_dir(path):
        raise NotADirectoryError(errno.ENOTDIR, "It is a file, and a log directory is needed", path)


def _read_offsets(fs: FileSystem, path: str, unreadable: list[str]) -> dict[TopicPartition, int] | None:
    """None, where the file cannot be read: then more is recovered than need be, and nothing is lost."""
    try:
        return checkpoint.read_offsets(fs, path) if fs.exists(path) else None
    except CorruptCheckpointError as error:
        unreadable.append(str(error))
        return None


def new_identity(cluster_id: str, node_id: int, runtime: Runtime) -> dict[str, str]:
    """meta.properties of a new directory: every one names its cluster, its node and itself."""
    return {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": _random_id(runtime),
    }


def cluster_id(fs: FileSystem, paths: Iterable[str], runtime: Runtime) -> str:
    """That of a directory which has one already, or a new one: all directories of a broker share it."""
    for path in paths:
        try:
            known = checkpoint.read_properties(fs, f"{path}/{layout.META_PROPERTIES}")
        except (OSError, CorruptCheckpointError):
            continue
        if "cluster.id" in known:
            return known["cluster.id"]
    return _random_id(runtime)


def _random_id(runtime: Runtime) -> str:
    number = uuid.UUID(int=runtime.randrange(2**128), version=4)
    # Kafka's own ids never begin with a dash: a tool would take one for an option.
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=").replace("-", "A", 1)


def contents(log_dir: LogDir) -> Contents:
    """What to load and what to remove. `-stray` directories are left alone, strangers refused."""
    found = Contents([], [], [], [])
    try:
        names = log_dir.fs.list_dir(log_dir.path)
        listed = sorted(name for name in names if log_dir.fs.is_dir(f"{log_dir.path}/{name}"))
    except OSError as error:
        log_dir.fail(error, "listing")
        return found
    for name in listed:
        marked, partition = layout.parse_marked_dir(name), layout.parse_partition_dir(name)
        if marked is not None:
            found.named.append(marked[0])
            if marked[1] == layout.DELETE_DIR:
                found.doomed.append(name)
            elif marked[1] == layout.FUTURE_DIR:
                found.futures.append(name)
        elif partition is None:
            raise StorageError(
                f"{log_dir.path}/{name} is not a partition's directory; move it away, Kafka would refuse it too"
            )
        elif log_dir.fs.is_link(f"{log_dir.path}/{name}"):
            _logger.error(
                "%s/%s is a symbolic link, and not loaded: put the directory itself there", log_dir.path, name
            )
        elif partition.topic != layout.METADATA_TOPIC:
            found.partitions.append(name)
            found.named.append(partition)
    return found
