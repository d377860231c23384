"""All logs of a broker, over its log directories: opening, making, deleting, checkpoints, the clean stop.

Each directory is locked, recovered on threads of its own and checkpointed by itself; one that fails goes offline with
its logs while the others go on. Background work (flush by time, retention, delayed deletion, expiry) is one method
each, called by whoever keeps time.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.config import BrokerConfig, LogConfig
from ottla.errors import BrokerError, CorruptCheckpointError, LogDirLockedError, StorageError
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout, retention
from ottla.storage.fs import File, FileSystem, raise_open_file_limit
from ottla.storage.handles import HandlePool
from ottla.storage.layout import TopicPartition
from ottla.storage.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery import load_log

_METADATA_TOPIC = "__cluster_metadata"  # a KRaft controller's own log; it is not a partition of ours
Progress = Callable[[int, int, str], None]  # logs done, logs in all, the last one's name


class Opened(NamedTuple):
    """A log directory that is in use."""

    dir: LogDir
    lock: File
    clean: bool
    recovery_points: dict[TopicPartition, int] | None  # None: not known
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaned: dict[TopicPartition, int]


class LogManager:
    """Owns the log directories and every log in them."""

    def __init__(
        self,
        fs: FileSystem,
        runtime: Runtime,
        config: BrokerConfig,
        *,
        defaults: LogConfig | None = None,
        topic_configs: Mapping[str, LogConfig] | None = None,
        node_id: int = 1,
    ) -> None:
        self._fs = fs
        self._runtime = runtime
        self._config = config
        self._defaults = defaults or LogConfig()
        self._topic_configs = dict(topic_configs or {})
        self._node_id = node_id
        self._opened: list[Opened] = []
        # Shares of the limit: one half for logs being appended to, the rest for indexes (a file and a map each),
        # old segments, sockets.
        self._handles = HandlePool(max(64, min(4096, raise_open_file_limit() // 8)))
        self._logs: dict[TopicPartition, Log] = {}
        self._doomed: list[tuple[int, LogDir, str]] = []  # (when, where, path) of `-delete` directories
        self.failed_dirs: dict[str, BaseException] = {}  # those that could not even be opened

    # -- opening

    def open(self, on_progress: Progress | None = None) -> None:
        """Lock and load every directory. Raises when none is left, or one must not be touched."""
        try:
            self._open_dirs()
            self._load_all(on_progress)
        except BrokerError:
            self.abandon()
            raise
        self.checkpoint()
        if not self.online_dirs:
            reasons = [str(error) for error in self.failed_dirs.values()]
            reasons += [str(opened.dir.failure) for opened in self._opened]
            self.abandon()
            raise StorageError(f"no log directory is usable: {'; '.join(reasons)}")

    def _open_dirs(self) -> None:
        cluster_id = self._cluster_id()
        for path in self._config.log_dirs:
            lock: File | None = None
            try:
                self._fs.make_dir(path)
                lock = self._fs.lock(f"{path}/{layout.LOCK}")
                if lock is None:
                    raise LogDirLockedError(
                        f"{path} is in use by another process; stop it, or choose another directory"
                    )
                self._opened.append(self._open_dir(path, lock, cluster_id))
            except OSError as error:
                self.failed_dirs[path] = error
                if lock is not None:
                    lock.close()

    def _open_dir(self, path: str, lock: File, cluster_id: str) -> Opened:
        fs = self._fs
        self._identify(path, cluster_id)
        clean = checkpoint.consume_clean_shutdown(fs, path)
        log_dir = LogDir(fs, path)
        names = (layout.LOG_START_OFFSETS, layout.HIGH_WATERMARKS, layout.CLEANER_OFFSETS)
        others = (self._read_offsets(f"{path}/{name}") or {} for name in names)
        return Opened(log_dir, lock, clean, self._read_offsets(f"{path}/{layout.RECOVERY_POINTS}"), *others)

    def _read_offsets(self, path: str) -> dict[TopicPartition, int] | None:
        """None, where the file cannot be read: then more is recovered than need be, and nothing is lost."""
        try:
            return checkpoint.read_offsets(self._fs, path) if self._fs.exists(path) else None
        except CorruptCheckpointError:
            return None

    def _cluster_id(self) -> str:
        """That of a directory which has one already, or a new one: all directories of a broker share it."""
        for path in self._config.log_dirs:
            try:
                known = checkpoint.read_properties(self._fs, f"{path}/{layout.META_PROPERTIES}")
            except (OSError, CorruptCheckpointError):
                continue
            if "cluster.id" in known:
                return known["cluster.id"]
        return self._random_id()

    def _identify(self, path: str, cluster_id: str) -> None:
        """Every directory names its cluster, its node and itself."""
        file = f"{path}/{layout.META_PROPERTIES}"
        if not self._fs.exists(file):
            properties = {
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(self._node_id),
                "directory.id": self._random_id(),
            }
            checkpoint.write_properties(self._fs, file, properties)

    def _random_id(self) -> str:
        number = uuid.UUID(int=self._runtime.randrange(2**128), version=4)
        return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=").replace("-", "A", 1)

    def _load_all(self, on_progress: Progress | None) -> None:
        work = [(opened, name) for opened in self._opened for name in self._partition_dirs(opened)]
        done = 0

        def report(item: tuple[Opened, str]) -> None:
            nonlocal done
            done += 1
            if on_progress:
                on_progress(done, len(work), item[1])

        workers = self._config.num_recovery_threads_per_data_dir * max(1, len(self._opened))
        results = self._runtime.map_blocking(lambda item: self._load(*item), work, workers, report)
        for (opened, name), log, error in results:
            if log is not None:
                other = self._logs.setdefault(log.partition, log)
                if other is not log:
                    log.abandon()
                    raise StorageError(
                        f"{log.partition} lies in {other.path} and in {log.path}; move one away"
                    )
            elif isinstance(error, BrokerError):
                self._fail_dir(opened.dir, error)
            elif error is not None:
                raise StorageError(f"{opened.dir.path}/{name} cannot be loaded: {error}") from error

    def _fail_dir(self, log_dir: LogDir, error: BrokerError) -> None:
        if not log_dir.offline:
            cause = error.__cause__
            log_dir.fail(cause if isinstance(cause, OSError) else OSError(str(error)), "loading")

    def _partition_dirs(self, opened: Opened) -> list[str]:
        """Names of directories to load. `-delete` ones are queued, `-stray` ones left alone, strangers refused."""
        names = []
        try:
            listed = sorted(name for name in self._fs.list_dir(opened.dir.path) if self._is_dir(opened, name))
        except OSError as error:
            opened.dir.fail(error, "listing")
            return []
        for name in listed:
            marked = layout.parse_marked_dir(name)
            partition = layout.parse_partition_dir(name)
            if marked is not None:
                if marked[1] == layout.DELETE_DIR:
                    self._doomed.append(
                        (self._runtime.monotonic_ms(), opened.dir, f"{opened.dir.path}/{name}")
                    )
            elif partition is None:
                raise StorageError(
                    f"{opened.dir.path}/{name} is not a partition's directory; move it away, Kafka would refuse it too"
                )
            elif partition.topic != _METADATA_TOPIC:
                names.append(name)
        return names

    def _is_dir(self, opened: Opened, name: str) -> bool:
        return self._fs.is_dir(f"{opened.dir.path}/{name}")

    def _load(self, opened: Opened, name: str) -> Log:
        partition = layout.parse_partition_dir(name)
        assert partition is not None
        log = load_log(
            opened.dir,
            f"{opened.dir.path}/{name}",
            partition,
            self._config_of(partition.topic),
            self._runtime,
            clean=opened.clean,
            recovery_point=(opened.recovery_points or {}).get(partition, 0),
            start_offset=opened.start_offsets.get(partition, 0),
            may_have_gaps=opened.recovery_points is None or partition in opened.cleaned,
            producer_expiration_ms=self._config.producer_id_expiration_ms,
            handles=self._handles,
        )
        log.raise_high_watermark(opened.high_watermarks.get(partition, 0))
        return log

    def _config_of(self, topic: str) -> LogConfig:
        return self._topic_configs.get(topic, self._defaults)

    # -- the logs

    @property
    def online_dirs(self) -> list[LogDir]:
        return [opened.dir for opened in self._opened if not opened.dir.offline]

    @property
    def logs(self) -> dict[TopicPartition, Log]:
        """Every log whose directory is online."""
        return {partition: log for partition, log in self._logs.items() if not log.dir.offline}

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def get_or_create(self, partition: TopicPartition, topic_id: uuid.UUID | None = None) -> Log:
        """The partition's log; a new one goes to the online directory with the fewest partitions."""
        log = self._logs.get(partition)
        if log is not None:
            return log
        if not layout.is_topic_name(partition.topic):
            raise StorageError(f"{partition.topic!r} is not a topic name")
        log_dir = self._emptiest_dir()
        path = f"{log_dir.path}/{partition}"
        log = load_log(
            log_dir, path, partition, self._config_of(partition.topic), self._runtime,
            clean=True, producer_expiration_ms=self._config.producer_id_expiration_ms, handles=self._handles,
        )  # fmt: skip
        if topic_id is not None:
            try:
                checkpoint.write_topic_id(self._fs, f"{path}/{layout.PARTITION_METADATA}", topic_id)
            except OSError as error:
                raise log_dir.fail(error, f"creating {partition}") from error
            log.topic_id = topic_id
        self._logs[partition] = log
        return log

    def _emptiest_dir(self) -> LogDir:
        dirs = self.online_dirs
        if not dirs:
            raise StorageError("no log directory is online")
        counts = {id(log_dir): 0 for log_dir in dirs}
        for log in self._logs.values():
            if id(log.dir) in counts:
                counts[id(log.dir)] += 1
        return min(dirs, key=lambda log_dir: counts[id(log_dir)])

    def configure(self, topic: str, config: LogConfig) -> None:
        """A topic's settings from now on."""
        self._topic_configs[topic] = config
        for partition, log in self._logs.items():
            if partition.topic == topic:
                log.config = config

    def truncate(self, partition: TopicPartition, offset: int) -> None:
        """Cut a log and write recovery points at once: the old one may lie past what is flushed later."""
        log = self._logs[partition]
        if log.truncate_to(offset):
            self.checkpoint(log.dir)

    def delete(self, partition: TopicPartition) -> None:
        """Take a log out. Its directory is renamed now and removed after file.delete.delay.ms."""
        log = self._logs.pop(partition)
        log.abandon()
        unique = uuid.UUID(int=self._runtime.randrange(2**128), version=4).hex
        path = f"{log.dir.path}/{layout.marked_dir(partition, unique, layout.DELETE_DIR)}"
        try:
            self._fs.rename(log.path, path)
            self._fs.sync_dir(log.dir.path)
        except OSError as error:
            raise log.dir.fail(error, f"deleting {partition}") from error
        self._doomed.append((self._runtime.monotonic_ms() + log.config.file_delete_delay_ms, log.dir, path))
        self.checkpoint(log.dir)

    # -- background work

    def flush_due(self) -> None:
        """Ask for a flush of every log whose flush.ms is over."""
        now_ms = self._runtime.monotonic_ms()
        for log in self.logs.values():
            unflushed = log.recovery_point < log.end_offset
            if unflushed and now_ms - log.flusher.flushed_ms >= log.config.flush_ms:
                log.flusher.request()

    def apply_retention(self) -> int:
        """Retention for every log, and the files whose delay is over; how many segments were taken out."""
        now_ms = self._runtime.now_ms()
        removed = 0
        for log in self.logs.values():
            try:
                removed += len(retention.apply(log, now_ms))
                log.delete_due_files()
            except StorageError:
                continue  # its directory is offline now
        self.remove_doomed()
        return removed

    def remove_doomed(self) -> None:
        """Remove `-delete` directories whose delay is over."""
        now_ms = self._runtime.monotonic_ms()
        for entry in [entry for entry in self._doomed if entry[0] <= now_ms]:
            _, log_dir, path = entry
            self._doomed.remove(entry)
            if log_dir.offline:
                continue
            try:
                for name in self._fs.list_dir(path):
                    self._fs.unlink(f"{path}/{name}")
                self._fs.remove_dir(path)
            except OSError as error:
                log_dir.fail(error, f"removing {path}")

    def expire_producers(self) -> None:
        now_ms = self._runtime.now_ms()
        for log in self.logs.values():
            log.producers.remove_expired(now_ms)

    # -- checkpoints, stopping

    def checkpoint(self, only: LogDir | None = None) -> None:
        """Write recovery points, log start offsets and high watermarks of each directory."""
        for log_dir in self.online_dirs:
            if only is not None and log_dir is not only:
                continue
            logs = {partition: log for partition, log in self._logs.items() if log.dir is log_dir}
            values = {
                layout.RECOVERY_POINTS: {tp: log.flusher.checkpoint_offset for tp, log in logs.items()},
                layout.LOG_START_OFFSETS: {
                    tp: log.start_offset
                    for tp, log in logs.items()
                    if log.start_offset > log.segments.first.base_offset
                },
                layout.HIGH_WATERMARKS: {tp: log.high_watermark for tp, log in logs.items()},
            }
            try:
                for name, offsets in values.items():
                    checkpoint.write_offsets(self._fs, f"{log_dir.path}/{name}", offsets)
            except OSError as error:
                log_dir.fail(error, "writing checkpoints")

    def close(self) -> None:
        """Flush and close all logs; directories in which that went well are marked as cleanly stopped."""
        failed: set[int] = set()
        results = self._runtime.map_blocking(
            lambda log: log.close(), self.logs.values(), self._config.num_recovery_threads_per_data_dir
        )
        failed |= {id(log.dir) for log, _, error in results if error is not None}
        self.checkpoint()
        for log in self._logs.values():
            log.abandon()
        for opened in self._opened:
            try:
                if not opened.dir.offline and id(opened.dir) not in failed:
                    checkpoint.write_clean_shutdown(self._fs, opened.dir.path)
            except OSError as error:
                opened.dir.fail(error, "marking the clean stop")
            opened.lock.close()

    def abandon(self) -> None:
        """Let go of everything without a flush, as if the process had been killed."""
        for log in self._logs.values():
            log.abandon()
        for opened in self._opened:
            opened.lock.close()
