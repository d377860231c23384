"""All logs of a broker, over its log directories: opening, making, deleting, checkpoints, the clean stop.

Each directory is locked, recovered on threads of its own and checkpointed by itself; one that fails goes offline with
its logs while the others go on. What may block is planned here and done by whoever has threads for it: `plan_...`
returns the work. Regular work on single logs (flush by time, retention) is in upkeep.py.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from ottla.config import BrokerConfig, LogConfig
from ottla.errors import BrokerError, StorageError
from ottla.names import TopicPartition, is_topic_name
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout, losses, removal
from ottla.storage.cleaning.log_cleaner import LogCleaner
from ottla.storage.descriptors import shares
from ottla.storage.fs import FileSystem, describe, raise_open_file_limit
from ottla.storage.handles import HandlePool
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir, Trouble
from ottla.storage.losses import Loss
from ottla.storage.offset_checkpoints import OffsetCheckpoints
from ottla.storage.producers.quota import ProducerQuota
from ottla.storage.recovery import gone, opened_dir
from ottla.storage.recovery.loading import load_log
from ottla.storage.recovery.opened_dir import OpenedDir
from ottla.storage.relocation import Relocation

_logger = logging.getLogger(__name__)

_SYNC_WORKERS = 8  # for each directory: they wait for syncs, of which the disk does many at once

Progress = Callable[[int, int, str], None]  # logs done, logs in all, the last one's name


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
        cluster_id: str | None = None,
    ) -> None:
        self._fs = fs
        self._runtime = runtime
        self._config = config
        self._defaults = defaults or LogConfig()
        self._topic_configs = dict(topic_configs or {})
        self._node_id = node_id
        self._cluster_id = cluster_id  # where the cluster has one already
        self._opened: list[OpenedDir] = []
        self.shares = shares(raise_open_file_limit(), len(config.log_dirs))
        self.handles = HandlePool(self.shares.loop_files)
        self._logs: dict[TopicPartition, Log] = {}
        self._producer_quota = ProducerQuota(config.max_producer_ids, self._logs)
        self._homes: dict[TopicPartition, LogDir] = {}  # where each partition lies, or would have
        self.cleaner = LogCleaner(runtime, config)
        self._doomed: removal.Doomed = deque()  # (when, where, path) of `-delete` directories
        self._checkpoints = checkpoints = OffsetCheckpoints(self._opened, self._logs)
        self.checkpoint = checkpoints.write_all
        self.plan_checkpoint = checkpoints.plan
        self.plan_start_checkpoint = checkpoints.plan_start_in
        self.plan_start = checkpoints.plan_start
        self.write_recovery_point = checkpoints.write_recovery_point
        self.cleaned_to = checkpoints.cleaned_to
        self.note_cleaned = checkpoints.note_cleaned
        # What was under way when the broker last stopped.
        self.unfinished_moves: dict[TopicPartition, LogDir] = {}
        self.failed_dirs: dict[str, OSError] = {}  # those that could not even be opened
        # Directories that were gone at the start, and are there again, empty.
        self.lost_partitions: list[str] = []

    # -- opening

    def open(self, on_progress: Progress | None = None) -> None:
        """Lock and load every directory. Raises when none is left, or one must not be touched."""
        try:
            self._open_dirs()
            self._load_all(on_progress)
            self._flush_recovered()
        except BrokerError:
            self.abandon()
            raise
        self.checkpoint()
        if not self.online_dirs:
            reasons = [f"{trouble.path}: {trouble.reason}" for trouble in self.troubles]
            self.abandon()
            raise StorageError(
                f"no log directory is usable: {'; '.join(reasons)}; look at the disk, or at log.dirs"
            )
        for path, error in self.failed_dirs.items():
            _logger.error(
                "log directory %s is offline: %s, opening it. Look at the disk, then start the broker again",
                path, describe(error),
            )  # fmt: skip

    def _open_dirs(self) -> None:
        cluster_id = self._cluster_id
        if cluster_id is None:
            cluster_id = opened_dir.cluster_id(self._fs, self._config.log_dirs, self._runtime)
        for path in self._config.log_dirs:
            identity = opened_dir.new_identity(cluster_id, self._node_id, self._runtime)
            try:
                opened = opened_dir.open_dir(self._fs, path, identity)
                opened.dir.partitions = partial(self._partitions_in, opened.dir)
                self._opened.append(opened)
            except OSError as error:
                self.failed_dirs[path] = error

    def _load_all(self, on_progress: Progress | None) -> None:
        work: list[tuple[OpenedDir, str]] = []
        there: set[TopicPartition] = set()
        for opened in self._opened:
            found = opened_dir.contents(opened.dir)
            work += [(opened, name) for name in found.partitions]
            there.update(found.named)
            now_ms = self._runtime.monotonic_ms()
            doomed = [*found.doomed, *found.futures]
            self._doomed += [(now_ms, opened.dir, f"{opened.dir.path}/{name}") for name in doomed]
            for name in found.futures:
                if (marked := layout.parse_marked_dir(name)) is not None:
                    self.unfinished_moves[marked[0]] = opened.dir
        self._note_lost_partitions(there)
        done = 0

        def report(item: tuple[OpenedDir, str]) -> None:
            nonlocal done
            done += 1
            if on_progress:
                on_progress(done, len(work), item[1])

        # Where little is read, threads would only hand the interpreter to and fro (half the speed).
        unclean = {id(opened.dir) for opened in self._opened if not opened.clean}
        short: list[tuple[OpenedDir, str]] = []
        long: list[tuple[OpenedDir, str]] = []
        for item in work:
            is_short = id(item[0].dir) not in unclean or item[0].is_short(item[1])
            (short if is_short else long).append(item)
        workers = max(1, self._config.num_recovery_threads_per_data_dir * len(unclean))
        results = self._runtime.map_blocking(lambda item: self._load(*item), short, 1, report)
        results += self._runtime.map_blocking(lambda item: self._load(*item), long, workers, report)
        for (opened, name), log, error in results:
            if log is not None:
                other = self._logs.get(log.partition)
                self.add(log if other is None else self._choose(log, other))
            elif isinstance(error, BrokerError):
                self._fail_dir(opened.dir, error)
            elif error is not None:
                raise StorageError(f"{opened.dir.path}/{name} cannot be loaded: {error}") from error

    def _flush_recovered(self) -> None:
        """What was found above the recovery points is on disk before anybody is served: it must not be lost later, when
        the power goes, after it was found to be there."""
        unflushed = [log for log in self.logs.values() if log.recovery_point < log.end_offset]
        if unflushed:
            # One that fails has taken its directory offline.
            self._runtime.map_blocking(lambda log: log.flush(), unflushed, self._sync_workers)

    @property
    def _sync_workers(self) -> int:
        each = max(_SYNC_WORKERS, self._config.num_recovery_threads_per_data_dir)
        return each * len(self._opened)

    def _note_lost_partitions(self, there: set[TopicPartition]) -> None:
        """Of those whose topic is still known; they will be made anew, empty, where they were."""
        if self.failed_dirs or any(opened.dir.offline for opened in self._opened):
            return  # they may lie there
        for opened, partition in list(gone.lost_partitions(self._opened, there)):
            if self._topic_configs and partition.topic not in self._topic_configs:
                continue
            try:
                gone.note(opened, partition, self._runtime.now_ms())
            except OSError as error:
                opened.dir.fail(error, f"noting that {partition} is gone")
                return
            self._homes[partition] = opened.dir
            self.lost_partitions.append(f"{opened.dir.path}/{partition}")

    def _choose(self, one: Log, other: Log) -> Log:
        """Two logs of one partition: fine if a move was interrupted when both were complete. Else it is refused."""
        if one.topic_id is None or (one.topic_id, one.end_offset) != (other.topic_id, other.end_offset):
            one.abandon()
            raise StorageError(f"{one.partition} lies in {other.path} and in {one.path}; move one away")
        # The new directory had no checkpoint that told of it yet.
        is_new = one.partition not in (self._checkpoints.dir_of(one).recovery_points or {})
        kept, dropped = (one, other) if is_new else (other, one)
        self._logs[dropped.partition] = dropped
        self.plan_removal([dropped.partition])()
        return kept

    def _fail_dir(self, log_dir: LogDir, error: BrokerError) -> None:
        if not log_dir.offline:
            cause = error.__cause__
            log_dir.fail(cause if isinstance(cause, OSError) else OSError(str(error)), "loading")

    def _load(self, opened: OpenedDir, name: str) -> Log:
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
            witness=opened.witness(partition),
        )
        high_watermark = opened.high_watermarks.get(partition, 0)
        if high_watermark > log.end_offset and not opened.clean and not log.losses:
            log.notices.append(
                f"{log.path}: offsets up to {high_watermark - 1} were acknowledged, but it ends at {log.end_offset}:"
                " what is missing had not been flushed when the machine stopped"
            )
        log.raise_high_watermark(high_watermark)
        log.release()  # there may be more logs than files that may be open
        return log

    def _config_of(self, topic: str) -> LogConfig:
        return self._topic_configs.get(topic, self._defaults)

    # -- what is missing

    def losses(self) -> Iterator[tuple[str, Loss]]:
        """All that is on record and was not acknowledged when it was loaded, with the directory of its partition."""
        for log in self.logs.values():
            yield from ((log.path, loss) for loss in log.losses)
        for path in self.lost_partitions:
            if layout.parse_partition_dir(path.rpartition("/")[2]) not in self._logs:
                yield from ((path, loss) for loss in losses.read(self._fs, path).open)

    def missing_offsets(self) -> dict[TopicPartition, int]:
        """How many offsets of each log are on record as lost and not acknowledged by now; logs without any left out."""
        counts = {}
        for partition, log in self.logs.items():
            if log.losses:
                log.losses = losses.read(self._fs, log.path).open
                counts[partition] = losses.count_offsets(log.losses)
        return counts

    def notices(self) -> list[str]:
        """What loading had to say besides."""
        unreadable = [
            f"{text}; what it said is not known any more"
            for opened in self._opened
            for text in opened.unreadable
        ]
        return [*unreadable, *(notice for log in self.logs.values() for notice in log.notices)]

    def configure_broker(self, config: BrokerConfig) -> None:
        """The broker's settings have changed: those that count while it runs take effect."""
        self._config = config
        self.cleaner.configure(config)
        for log in self._logs.values():
            log.producers.expiration_ms = config.producer_id_expiration_ms

    # -- the logs

    @property
    def online_dirs(self) -> list[LogDir]:
        return [opened.dir for opened in self._opened if not opened.dir.offline]

    @property
    def full_dirs(self) -> list[LogDir]:
        """Those that take no records, because there is no room."""
        return [opened.dir for opened in self._opened if opened.dir.fullness is not None]

    @property
    def troubles(self) -> list[Trouble]:
        """What is wrong with which directory, those that could not be opened too."""
        found = [
            Trouble(path, "offline", error, "opening it", []) for path, error in self.failed_dirs.items()
        ]
        for opened in self._opened:
            log_dir = opened.dir
            if log_dir.refusal is not None:
                state = "offline" if log_dir.offline else "full"
                found.append(
                    Trouble(log_dir.path, state, log_dir.refusal, log_dir.doing, log_dir.partitions())
                )
        return found

    def _partitions_in(self, log_dir: LogDir) -> list[str]:
        """Any thread may ask: whichever meets an error."""
        homes = list(self._homes.items())
        return [str(key) for key in sorted(key for key, home in homes if home is log_dir)]

    @property
    def was_clean(self) -> bool:
        """Whether every directory was stopped cleanly the last time."""
        return all(opened.clean for opened in self._opened)

    @property
    def configured_dirs(self) -> tuple[str, ...]:
        return self._config.log_dirs

    @property
    def logs(self) -> dict[TopicPartition, Log]:
        """Every log whose directory is online. /metrics asks on a thread of its own, so a copy is gone through."""
        return {partition: log for partition, log in list(self._logs.items()) if not log.dir.offline}

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def get_or_create(self, partition: TopicPartition, topic_id: uuid.UUID | None = None) -> Log:
        """The partition's log; a new one goes to the online directory with the fewest partitions."""
        log = self._logs.get(partition)
        return log if log is not None else self.add(self.plan_new(partition, topic_id)())

    def plan_new(
        self,
        partition: TopicPartition,
        topic_id: uuid.UUID | None = None,
        leader_epoch: int | None = None,
    ) -> Callable[[], Log]:
        """Decide where a new log will lie. What is returned makes it and may run on any thread; then comes `add`.

        With the epoch of its leader, that need not be written when the first record comes.
        """
        if not is_topic_name(partition.topic):
            raise StorageError(f"{partition.topic!r} is not a topic name")
        # Where making it failed once, something of it may lie: the next start would refuse a second copy elsewhere.
        log_dir = self._homes.get(partition)
        if log_dir is None:
            log_dir = self._homes[partition] = self._emptiest_dir()
        log_dir.check_online()
        config = self._config_of(partition.topic)

        def make() -> Log:
            path = f"{log_dir.path}/{partition}"
            if self._fs.is_link(path):
                raise StorageError(f"{path} is a symbolic link: put the directory itself there")
            log = load_log(
                log_dir, path, partition, config, self._runtime,
                clean=True, producer_expiration_ms=self._config.producer_id_expiration_ms,
            )  # fmt: skip
            try:
                if topic_id is not None:
                    checkpoint.write_topic_id(self._fs, f"{path}/{layout.PARTITION_METADATA}", topic_id)
                    log.topic_id = topic_id
                if leader_epoch is not None:
                    log.epochs.assign(leader_epoch, log.end_offset)
            except OSError as error:
                log.abandon()
                raise log_dir.refuse(error, f"creating {partition}") from error
            log.release()  # many may be made before the first of them is taken in, and counted by a pool
            return log

        return make

    def add(self, log: Log) -> Log:
        """Take in a log that was made after `plan_new`."""
        self._logs[log.partition] = log
        self._homes[log.partition] = log.dir
        log.use_handles(self.handles)
        log.producers.quota = self._producer_quota
        return log

    def home_of(self, partition: TopicPartition) -> LogDir:
        """Where a partition lies, or will after `plan_new`."""
        return self._homes[partition]

    def prefer(self, partition: TopicPartition, log_dir: LogDir) -> None:
        """Where the log of a partition will lie, if it is ever made here."""
        if partition not in self._logs:
            self._homes[partition] = log_dir

    # -- moving to another directory

    def plan_move(self, partition: TopicPartition, target: LogDir) -> Relocation:
        config, expiration_ms = self._config_of(partition.topic), self._config.producer_id_expiration_ms
        return Relocation(partition, target, config, self._runtime, expiration_ms)

    def doomed_path(self, log: Log) -> str:
        """A name for the directory of a log that is given up."""
        return self._marked_path(log, layout.DELETE_DIR)

    def moved(self, old: Log, old_path: str, new: Log) -> list[tuple[LogDir, Callable[[], None]]]:
        """A log has taken the place of another. What is returned writes checkpoints, each on its directory's thread."""
        self.cleaner.forget(old.partition)
        self._doomed.append(
            (self._runtime.monotonic_ms() + old.config.file_delete_delay_ms, old.dir, old_path)
        )
        self.add(new)
        works: list[tuple[LogDir, Callable[[], None] | None]] = []
        cleaned_to = self._checkpoints.dir_of(old).cleaned.pop(old.partition, None)
        if cleaned_to is not None:
            works.append((new.dir, self.note_cleaned(new, cleaned_to)))
        works += [(log.dir, self.plan_checkpoint(log.dir)) for log in (new, old) if not log.dir.offline]
        return [(log_dir, work) for log_dir, work in works if work is not None]

    def _emptiest_dir(self) -> LogDir:
        dirs = self.online_dirs
        if not dirs:
            raise StorageError("no log directory is online")
        if len(dirs) == 1:
            return dirs[0]
        counts = {id(log_dir): 0 for log_dir in dirs}
        for log_dir in self._homes.values():
            if id(log_dir) in counts:
                counts[id(log_dir)] += 1
        return min(dirs, key=lambda log_dir: counts[id(log_dir)])

    def configure(self, topic: str, config: LogConfig, partitions: Iterable[int] | None = None) -> None:
        """A topic's settings from now on; `partitions`, where they are known, saves a look at all logs."""
        self._topic_configs[topic] = config
        if partitions is None:
            partitions = [tp.partition for tp in self._logs if tp.topic == topic]
        for number in partitions:
            log = self._logs.get(TopicPartition(topic, number))
            if log is not None:
                log.config = config

    def plan_removal(
        self, partitions: Collection[TopicPartition], mark: str = layout.DELETE_DIR
    ) -> Callable[[], None]:
        """Take logs of one directory out. What is returned closes and renames their files, and may run on any thread;
        the directory's checkpoint is to be written after it. With the mark `-stray` the files stay for the user to
        look at."""
        logs = [self._logs.pop(partition) for partition in partitions]
        paths = [self._marked_path(log, mark) for log in logs]
        opened = self._checkpoints.dir_of(logs[0])
        named = [opened.cleaned.pop(partition, None) for partition in partitions]
        cleaned = None if named.count(None) == len(named) else dict(opened.cleaned)
        for partition in partitions:
            self._homes.pop(partition, None)
            self.cleaner.forget(partition)

        def remove() -> None:
            removal.rename(opened, logs, paths, cleaned)
            if mark == layout.DELETE_DIR:
                now_ms = self._runtime.monotonic_ms()
                for log, path in zip(logs, paths, strict=True):
                    self._doomed.append((now_ms + log.config.file_delete_delay_ms, opened.dir, path))

        return remove

    def _marked_path(self, log: Log, mark: str) -> str:
        unique = uuid.UUID(int=self._runtime.randrange(2**128), version=4).hex
        return f"{log.dir.path}/{layout.marked_dir(log.partition, unique, mark)}"

    # -- background work

    def take_doomed(self) -> list[tuple[LogDir, str]]:
        """The `-delete` directories whose delay is over, for the caller to remove."""
        return removal.take_due(self._doomed, self._runtime.monotonic_ms())

    # -- stopping

    def close(self) -> list[str]:
        """Flush and close all logs; directories in which that went well are marked as cleanly stopped, and told."""
        clean: list[str] = []
        changed = [log for log in self.logs.values() if not log.is_as_closed]
        results = self._runtime.map_blocking(lambda log: log.close(), changed, self._sync_workers)
        failed = {id(log.dir) for log, _, error in results if error is not None}
        self.checkpoint()
        for log in self._logs.values():
            log.abandon()
        for opened in self._opened:
            try:
                if not opened.dir.offline and id(opened.dir) not in failed:
                    checkpoint.write_clean_shutdown(self._fs, opened.dir.path)
                    clean.append(opened.dir.path)
            except OSError as error:
                opened.dir.refuse(error, "marking the clean stop")
            opened.lock.close()
        return clean

    def abandon(self) -> None:
        """Let go of everything without a flush, as if the process had been killed."""
        for log in self._logs.values():
            log.abandon()
        for opened in self._opened:
            opened.lock.close()
