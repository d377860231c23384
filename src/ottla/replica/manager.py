"""All partitions of this broker, in one place for the api floor: append, fetch, offsets, log directories.

Each kind of work has a file of its own; this one puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.cluster.image import ClusterImage
from ottla.config import BrokerConfig, LogConfig
from ottla.metrics import Metrics
from ottla.names import TopicPartition
from ottla.replica.appends import Appends
from ottla.replica.assignments import Assignments
from ottla.replica.background import Background
from ottla.replica.fetches import Fetch, Fetches
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.log_dirs import LogDirs
from ottla.replica.moves import Moves
from ottla.replica.offsets import Offsets
from ottla.replica.partition import Partition
from ottla.replica.waits import DelayedProduce, Purgatories
from ottla.replica.watermarks import Watermarks
from ottla.runtime import Done, LoopRuntime
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager

T = TypeVar("T")


class ReplicaManager:
    """The replicas that this broker holds. Everything is called on the loop's thread, and answers there."""

    def __init__(
        self,
        runtime: LoopRuntime,
        log_manager: LogManager,
        config: BrokerConfig,
        node_id: int,
        metrics: Metrics,
        *,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._logs = log_manager
        self._hosted = Hosted()
        self.purgatories = Purgatories(runtime, config)
        self._lanes = Lanes(runtime, log_manager.shares.dir_files)
        watermarks = Watermarks(self._lanes, self.purgatories)
        self.fetches = fetches = Fetches(runtime, self._hosted, self.purgatories, self._lanes, watermarks)
        self._moves = Moves(log_manager, self._hosted, self._lanes, fetches)
        self._assignments = Assignments(
            runtime,
            log_manager,
            self._hosted,
            self.purgatories,
            self._lanes,
            watermarks,
            self._moves,
            node_id,
            metrics,
            config_of,
        )
        # Bound once: a call through another method would cost as much as the rest of what they add.
        self.appends = Appends(runtime, self._hosted, self.purgatories, self._lanes, metrics)
        self.append = self.appends.append
        self.fetch = fetches.fetch
        offsets = Offsets(self._hosted, self.purgatories, self._lanes, log_manager)
        self.list_offset = offsets.list_offset
        self.end_offset_for_epoch = offsets.end_offset_for_epoch
        self.delete_records = offsets.delete_records
        self.alter_replica_log_dirs = self._moves.alter
        self.describe_log_dirs = LogDirs(runtime, log_manager, self._moves).describe
        self.conversions = runtime.lane("conversions")  # of records, for old clients
        self._background = Background(runtime, log_manager, self._hosted, self._lanes, config)
        self.when_ready = self._assignments.when_ready

    def apply_image(self, old: ClusterImage | None, new: ClusterImage) -> None:
        """Begin what the image asks for, see `when_ready`. The first one (`old` is None) also starts regular work."""
        self._assignments.apply(old, new)
        if old is None:
            self._background.start()
        self.when_ready(lambda: self._background.look_for_flushes(self._assignments.shortest_flush_ms))

    def configure_broker(self, config: BrokerConfig) -> None:
        """The broker's settings have changed while it runs."""
        self._logs.configure_broker(config)
        self._background.configure(config)

    def stop(self, done: Callable[[], None]) -> None:
        """Begin nothing new, and call `done` when no thread is at work on a log any more."""
        self._background.stop()
        self.appends.slow.stop()
        self._moves.stop(lambda: self.when_ready(lambda: self._lanes.drain(done)))

    def partition(self, key: TopicPartition) -> Partition | None:
        return self._hosted.partitions.get(key)

    def offline_partitions(self) -> list[TopicPartition]:
        """Those whose log directory is offline, or could not be opened."""
        return sorted(
            key
            for key, partition in list(self._hosted.partitions.items())  # for /metrics on another thread
            if partition.is_offline or (partition.log is not None and partition.log.dir.offline)
        )

    @property
    def lacks_logs(self) -> bool:
        """Whether there are partitions whose log could not be made, or found."""
        return bool(self._assignments.offline)

    def on_log(self, key: TopicPartition, work: Callable[[Log], T], done: Done[T]) -> None:
        """Do something that may block to a partition's log, on its directory's thread, in order with all else."""
        partition = self._hosted.partitions.get(key)
        if partition is None or partition.log is None:
            done(None, self._hosted.missing(key))
        else:
            self._lanes.on(partition, work, done)

    def cancel_append(self, wait: DelayedProduce) -> None:
        """The client is gone: what it produced stays, nobody needs the answer."""
        self.purgatories.produce.cancel(wait)

    def cancel_fetch(self, fetch: Fetch) -> None:
        """The client is gone."""
        fetch.cancel()
