"""Makes this broker's partitions what the cluster's image says: makes, changes and deletes them.

Files are made and removed on other threads; until its log is there, a partition answers that it does not lead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.cluster.image import ClusterImage, PartitionInfo, TopicInfo
from ottla.config import LogConfig
from ottla.metrics import Metrics
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition
from ottla.replica.waits import Purgatories
from ottla.runtime import LoopRuntime
from ottla.storage.layout import TopicPartition
from ottla.storage.log import Log
from ottla.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)


class Assignments:
    """Follows the image."""

    def __init__(
        self,
        runtime: LoopRuntime,
        logs: LogManager,
        hosted: Hosted,
        purgatories: Purgatories,
        node_id: int,
        metrics: Metrics,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._hosted = hosted
        self._purgatories = purgatories
        self._node_id = node_id
        self._metrics = metrics
        self._config_of = config_of
        self._under_way = 0
        self._waiting: list[Callable[[], None]] = []

    def apply(self, old: ClusterImage | None, new: ClusterImage) -> None:
        """Begin all that the new image asks for; `when_ready` tells when it is done."""
        self._hosted.image = new
        for topic in old.topics.values() if old else ():
            now = new.topics.get(topic.name)
            if now is None or now.topic_id != topic.topic_id:
                self._remove_topic(topic)
        for topic in new.topics.values():
            known = old.topics.get(topic.name) if old else None
            if known is not topic or (old and old.broker_configs is not new.broker_configs):
                self._update_topic(topic)

    def when_ready(self, ready: Callable[[], None]) -> None:
        """Call when no partition is being made or deleted any more; now, if none is."""
        if self._under_way:
            self._waiting.append(ready)
        else:
            ready()

    def _update_topic(self, topic: TopicInfo) -> None:
        self._logs.configure(topic.name, self._config_of(topic.name), range(len(topic.partitions)))
        for number, info in enumerate(topic.partitions):
            if self._node_id in info.replicas:
                self._update_partition(TopicPartition(topic.name, number), topic, info)

    def _update_partition(self, key: TopicPartition, topic: TopicInfo, info: PartitionInfo) -> None:
        partition = self._hosted.partitions.get(key)
        if partition is None:
            partition = Partition(key, topic.topic_id, self._node_id, self._metrics.topic(topic.name))
            self._hosted.partitions[key] = partition
            self._open_log(partition)
        partition.take_role(info)
        self._purgatories.role_changed(partition)

    def _open_log(self, partition: Partition) -> None:
        log = self._logs.get(partition.key)
        if log is not None:
            self._attach(partition, log)
            return
        self._under_way += 1
        try:
            make = self._logs.plan_new(partition.key, partition.topic_id)
        except Exception as error:  # noqa: BLE001 - told with the others, below
            self._opened(partition, None, error)
            return
        self._runtime.run_blocking(make, lambda log, error: self._opened(partition, log, error))

    def _opened(self, partition: Partition, log: Log | None, error: BaseException | None) -> None:
        if log is not None:
            self._logs.add(log)
            if self._hosted.partitions.get(partition.key) is partition:
                self._attach(partition, log)
            else:  # deleted while it was being made
                self._logs.delete(partition.key)
        elif error is not None:
            _logger.error("the log of %s could not be made", partition.key, exc_info=error)
        self._step_done()

    def _attach(self, partition: Partition, log: Log) -> None:
        partition.log = log
        if partition.is_leader:
            partition.raise_high_watermark(log)
        self._purgatories.role_changed(partition)

    def _remove_topic(self, topic: TopicInfo) -> None:
        for number in range(len(topic.partitions)):
            partition = self._hosted.partitions.pop(TopicPartition(topic.name, number), None)
            if partition is not None:
                partition.is_leader = False
                log, partition.log = partition.log, None
                self._purgatories.role_changed(partition)
                if log is not None:
                    self._logs.delete(partition.key)
        self._metrics.forget_topic(topic.name)

    def _step_done(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            waiting, self._waiting = self._waiting, []
            for ready in waiting:
                ready()
