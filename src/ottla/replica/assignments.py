"""Makes this broker's partitions what the cluster's image says: makes, changes and deletes them.

Files are made and removed on other threads; until its log is there, a partition answers that it does not lead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ottla.cluster.image import ClusterImage, PartitionInfo, TopicInfo
from ottla.config import LogConfig
from ottla.config.values import LONG_MAX
from ottla.errors import DiskFullError
from ottla.metrics import Metrics
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.moves import Moves
from ottla.replica.partition import Partition
from ottla.replica.waits import Purgatories
from ottla.replica.watermarks import Watermarks
from ottla.runtime import LoopRuntime
from ottla.storage import layout
from ottla.storage.layout import TopicPartition
from ottla.storage.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)

_NAMED = 20  # partitions that a line names
_TRY_AGAIN_MS = 5_000  # to make a log for which there was no room


class Assignments:
    """Follows the image."""

    def __init__(
        self,
        runtime: LoopRuntime,
        logs: LogManager,
        hosted: Hosted,
        purgatories: Purgatories,
        lanes: Lanes,
        watermarks: Watermarks,
        moves: Moves,
        node_id: int,
        metrics: Metrics,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._hosted = hosted
        self._purgatories = purgatories
        self._lanes = lanes
        self._watermarks = watermarks
        self._moves = moves
        self._node_id = node_id
        self._metrics = metrics
        self._config_of = config_of
        self.shortest_flush_ms = LONG_MAX  # of all topics that were ever seen
        self._under_way = 0
        self._waiting: list[Callable[[], None]] = []
        self._unfound: list[TopicPartition] = []  # at the start, while a log directory is offline
        # Partitions whose old files are being renamed, and what is to follow: a new log of the same name.
        self._being_removed: dict[TopicPartition, list[Callable[[], None]]] = {}

    def apply(self, old: ClusterImage | None, new: ClusterImage) -> None:
        """Begin all that the new image asks for; `when_ready` tells when it is done. `old` is None at the start."""
        self._hosted.image = new
        if old is None:
            self._remove(self._strays(new), layout.STRAY_DIR)
        gone: list[TopicPartition] = []
        for topic in old.topics.values() if old is not None else ():
            now = new.topics.get(topic.name)
            if now is None or now.topic_id != topic.topic_id:
                gone += self._drop_topic(topic)
        self._give_up(gone)
        for topic in new.topics.values():
            known = old.topics.get(topic.name) if old else None
            if known is not topic or (old and old.broker_configs is not new.broker_configs):
                self._give_up(self._update_topic(topic, is_start=old is None))
        if old is None and self._unfound:
            _logger.error(
                "%d partitions are offline, their logs may lie in %s: %s%s",
                len(self._unfound), ", ".join(self._logs.failed_dirs),
                ", ".join(map(str, self._unfound[:_NAMED])), ", ..." if len(self._unfound) > _NAMED else "",
            )  # fmt: skip

    def when_ready(self, ready: Callable[[], None]) -> None:
        """Call when no partition is being made or deleted any more; now, if none is."""
        if self._under_way:
            self._waiting.append(ready)
        else:
            ready()

    # -- what is there

    def _update_topic(self, topic: TopicInfo, *, is_start: bool) -> list[TopicPartition]:
        """Take in a topic as it is now; the partitions that are no longer this broker's and have a log."""
        config = self._config_of(topic.name)
        self.shortest_flush_ms = min(self.shortest_flush_ms, config.flush_ms)
        self._logs.configure(topic.name, config, range(len(topic.partitions)))
        gone = []
        for number, info in enumerate(topic.partitions):
            key = TopicPartition(topic.name, number)
            if self._node_id in info.replicas:
                partition = self._hosted.partitions.get(key)
                if partition is None:
                    self._add_partition(key, topic, info, is_start)
                else:
                    partition.take_role(info)
                    if partition.log is not None:
                        self._lanes.set_durable(partition, config.waits_for_flush)
                    self._watermarks.update(partition)
                    self._purgatories.role_changed(partition)
            elif self._drop_partition(key):
                gone.append(key)
        return gone

    def _add_partition(
        self, key: TopicPartition, topic: TopicInfo, info: PartitionInfo, is_start: bool
    ) -> None:
        partition = Partition(key, topic.topic_id, self._node_id, self._metrics.topic(topic.name))
        self._hosted.partitions[key] = partition
        partition.take_role(info)
        log = self._logs.get(key)
        if log is not None and key not in self._being_removed:
            self._attach(partition, log)
        elif is_start and self._logs.failed_dirs:
            # Its log may lie in a directory that could not be opened: an empty one elsewhere would hide it.
            partition.is_offline = True
            self._unfound.append(key)
        else:
            self._under_way += 1
            self._after_removal(key, partial(self._make_log, partition))

    def _after_removal(self, key: TopicPartition, then: Callable[[], None]) -> None:
        if key in self._being_removed:
            self._being_removed[key].append(then)
        else:
            then()

    def _make_log(self, partition: Partition) -> None:
        try:
            make = self._logs.plan_new(
                partition.key, partition.topic_id, partition.leader_epoch if partition.is_leader else None
            )
        except Exception as error:  # noqa: BLE001 - told below, with what the thread may find
            self._made(partition, None, error)
            return
        self._runtime.run_blocking(make, lambda log, error: self._made(partition, log, error))

    def _made(self, partition: Partition, log: Log | None, error: BaseException | None) -> None:
        if log is not None:
            partition.is_offline = False
            self._logs.add(log)
            if self._hosted.partitions.get(partition.key) is partition:
                self._attach(partition, log)
            else:  # deleted while it was being made
                self._remove([log], layout.DELETE_DIR)
        else:
            if isinstance(error, DiskFullError):
                if not partition.is_offline:
                    _logger.error("no log for %s, until there is room: %s", partition.key, error)
                self._runtime.call_later(_TRY_AGAIN_MS, partial(self._try_again, partition))
            else:
                _logger.error("the log of %s could not be made", partition.key, exc_info=error)
            partition.is_offline = True
        self._step_done()

    def _try_again(self, partition: Partition) -> None:
        if self._hosted.partitions.get(partition.key) is partition:
            self._under_way += 1
            self._make_log(partition)

    def _attach(self, partition: Partition, log: Log) -> None:
        partition.attach(log, self._logs.handles, self._lanes.of(log.dir).handles)
        self._watermarks.update(partition)
        self._lanes.set_durable(partition, log.config.waits_for_flush)
        self._purgatories.role_changed(partition)
        self._moves.resume(partition)

    # -- what is gone

    def _drop_topic(self, topic: TopicInfo) -> list[TopicPartition]:
        """The partitions of a deleted topic that have a log here."""
        self._metrics.forget_topic(topic.name)
        keys = (TopicPartition(topic.name, number) for number in range(len(topic.partitions)))
        return [key for key in keys if self._drop_partition(key)]

    def _drop_partition(self, key: TopicPartition) -> bool:
        """Forget a partition; whether there is a log of it."""
        partition = self._hosted.partitions.pop(key, None)
        if partition is None:
            return False
        log = partition.detach()
        self._purgatories.role_changed(partition)
        return log is not None

    def _give_up(self, keys: list[TopicPartition]) -> None:
        """Delete the logs of these partitions; of one that is just being moved, when that is over."""
        ready = []
        for key in keys:
            self._being_removed[key] = []
            log = self._logs.get(key)
            if self._moves.give_up(key, partial(self._give_up_later, key)) and log is not None:
                ready.append(log)
            else:
                self._under_way += 1
        self._remove(ready, layout.DELETE_DIR)

    def _give_up_later(self, key: TopicPartition) -> None:
        log = self._logs.get(key)
        assert log is not None
        self._remove([log], layout.DELETE_DIR)
        self._step_done()

    def _strays(self, image: ClusterImage) -> list[Log]:
        """Logs that the cluster does not know, or knows under another id: made anew while this broker was away."""
        return [log for log in self._logs.logs.values() if self._is_stray(log, image)]

    def _is_stray(self, log: Log, image: ClusterImage) -> bool:
        topic = image.topics.get(log.partition.topic)
        info = image.partition(*log.partition)
        return (
            topic is None
            or info is None
            or self._node_id not in info.replicas
            or (log.topic_id is not None and log.topic_id != topic.topic_id)
        )

    def _remove(self, logs: list[Log], mark: str) -> None:
        """Rename the directories on their lanes, then write each log directory's checkpoints without them."""
        by_dir: dict[LogDir, list[Log]] = {}
        for log in logs:
            by_dir.setdefault(log.dir, []).append(log)
        for log_dir, gone in by_dir.items():
            keys = [log.partition for log in gone]
            for key in keys:
                self._being_removed.setdefault(key, [])
            works = [self._logs.plan_removal(key, mark) for key in keys]
            checkpoint = self._logs.plan_checkpoint(log_dir)
            works += [checkpoint] if checkpoint is not None else []
            self._under_way += 1
            self._lanes.of(log_dir).run(partial(_do_all, works), partial(self._removed, keys))

    def _removed(self, keys: list[TopicPartition], _: None, error: BaseException | None) -> None:
        if error is not None:
            _logger.error("the files of %s could not be removed", keys[0], exc_info=error)
        for key in keys:
            for then in self._being_removed.pop(key):
                then()
        self._step_done()

    def _step_done(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            waiting, self._waiting = self._waiting, []
            for ready in waiting:
                ready()


def _do_all(works: list[Callable[[], None]]) -> None:
    for work in works:
        work()
