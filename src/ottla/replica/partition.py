"""One partition as this broker holds it: its role, leader epoch, replicas in sync, and its log.

A partition never reaches up: `append` says whether the high watermark moved, and the manager wakes whoever waits for
that. Who leads comes from the cluster's image (`take_role`).
"""

from __future__ import annotations

import uuid
from typing import Final

from ottla.cluster.image import PartitionInfo
from ottla.errors import (
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    LogDirOfflineError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
)
from ottla.metrics import TopicMetrics
from ottla.names import Bytes, TopicPartition
from ottla.replica import isr
from ottla.replica.results import NO_EPOCH
from ottla.storage.handles import HandlePool
from ottla.storage.log import reader as log_reader
from ottla.storage.log.batch_run import BatchRun
from ottla.storage.log.log import AppendInfo, Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log.validation import UNLIMITED, Origin, Validated

ALL_REPLICAS: Final = -1


class Partition:
    """Made when the image gives this broker a replica; `log` is None until its files are there."""

    __slots__ = (
        "_follower_ends", "_follower_starts", "_handles", "_isr", "_lane_handles", "_lent_log", "_loans",
        "_node_id", "_replica_count", "_replicas", "_stable_offset", "goes_by_lane", "is_durable",
        "is_leader", "is_lent", "is_offline", "key", "leader_epoch", "log", "metrics", "topic_id",
    )  # fmt: skip

    def __init__(self, key: TopicPartition, topic_id: uuid.UUID, node_id: int, metrics: TopicMetrics) -> None:
        self.key = key
        self.topic_id = topic_id
        self.metrics = metrics
        self.log: Log | None = None
        self.is_offline = False  # its log may lie in a directory that could not be opened
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self._node_id = node_id
        self._replica_count = 1
        self._isr: tuple[int, ...] = ()
        self._replicas: tuple[int, ...] = ()
        self._follower_ends: dict[int, int] = {}
        self._follower_starts: dict[int, int] = {}
        self.is_lent = False  # to the thread of its log directory; then only that may touch the log
        self.goes_by_lane = False  # appends go through the thread of its log directory
        self.is_durable = False
        self._loans = 0
        self._lent_log: Log | None = None
        self._stable_offset = 0

    # -- the log, and whose it is

    def attach(self, log: Log, handles: HandlePool, lane_handles: HandlePool) -> None:
        """The log is there. It counts its open files with the loop's, or with those of its directory's lane."""
        self.log = log
        self._handles = handles
        self._lane_handles = lane_handles
        self._choose_way()

    def enter_lane(self) -> None:
        """On the lane's thread, before anything is done to the log."""
        if not self.lent_log.has_handles:
            self.lent_log.use_handles(self._lane_handles)

    def leave_lane(self) -> None:
        """On the lane's thread, when it is through with what it was given."""
        if not self.is_durable:
            self.lent_log.use_handles(None)

    def replace_log(self, log: Log, lane_handles: HandlePool) -> None:
        """Another log has taken the place of this one, while it was lent."""
        log.flusher.hold()
        log.use_handles(None)
        self._lent_log = log
        self._lane_handles = lane_handles
        if self.log is not None:
            self.log = log

    def lend(self) -> None:
        self._loans += 1
        log = self.log
        if self._loans == 1 and log is not None:
            self._lent_log = log
            self._stable_offset = log.last_stable_offset
            log.flusher.hold()
            log.use_handles(None)
            self.is_lent = self.goes_by_lane = True

    def give_back(self) -> None:
        self._loans -= 1
        log = self.log
        if self._loans == 0:
            self.is_lent = False
            self._lent_log = None
            if log is not None:
                log.use_handles(self._handles)
                log.flusher.let_go()
            self._choose_way()

    def _choose_way(self) -> None:
        """The first append of a leader epoch writes that down on disk: one more reason to go by the lane."""
        log = self.log
        self.goes_by_lane = self.is_lent or (
            log is not None and self.is_leader and log.epochs.latest_epoch != self.leader_epoch
        )

    def detach(self) -> Log | None:
        """The partition is going away; its log is for whoever deletes it."""
        log, self.log = self.log, None
        self.is_leader = self.is_durable = False
        return log

    @property
    def lent_log(self) -> Log:
        """The log, for whoever it is lent to: also of a partition that has been detached meanwhile."""
        assert self._lent_log is not None
        return self._lent_log

    def flush(self) -> None:
        """Bring all that was appended to disk if that is as much as flush.messages says, on the lane's thread."""
        log = self.lent_log
        if log.end_offset - log.recovery_point >= log.config.flush_messages:
            log.flush()
        self.raise_high_watermark(log)
        self._stable_offset = log.last_stable_offset

    def limit(self, log: Log, isolation: Isolation) -> int:
        """How far such a reader may read. Of a log that is lent, the last stable offset is that of its last append."""
        if self.is_lent and isolation is Isolation.COMMITTED:
            return self._stable_offset
        return log_reader.limit(log, isolation)

    # -- the role

    def take_role(self, info: PartitionInfo) -> None:
        """Lead or follow, as the image says. A new leader knows nothing yet of how far its followers are."""
        if info.leader_epoch != self.leader_epoch:
            self._follower_ends, self._follower_starts = {}, {}
        self.is_leader = info.leader == self._node_id
        self.leader_epoch = info.leader_epoch
        self._replicas = info.replicas
        self._replica_count = len(info.replicas)
        self._isr = info.isr
        self._choose_way()

    # -- checks that come before every use

    def leader_log(self) -> Log:
        """The log, if this broker leads and can use it."""
        log = self.log
        if self.is_offline:
            raise LogDirOfflineError(f"{self.key} may lie in a log directory that is offline")
        if log is None or not self.is_leader:
            raise NotLeaderOrFollowerError(f"this broker does not lead {self.key}")
        if log.dir.failure is not None:
            raise LogDirOfflineError(f"{self.key} lies in {log.dir.path}, which is offline")
        return log

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client that knows an older leader than this one, or a newer."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpochError(
                f"{self.key}: leader epoch {current_leader_epoch} is older than {self.leader_epoch}"
            )
        raise UnknownLeaderEpochError(
            f"{self.key}: leader epoch {current_leader_epoch} is not known here, only {self.leader_epoch}"
        )

    def check_follower(self, node_id: int) -> None:
        """Refuse a broker that has no replica of this partition."""
        if node_id not in self._replicas:
            raise NotLeaderOrFollowerError(f"broker {node_id} has no replica of {self.key}")

    def check_topic_id(self, topic_id: uuid.UUID | None) -> None:
        if topic_id is not None and topic_id != self.topic_id:
            raise InconsistentTopicIdError(f"{self.key} belongs to topic {self.topic_id}, not {topic_id}")

    # -- the leader's work

    @property
    def in_sync(self) -> tuple[int, ...]:
        return self._isr

    def is_under_minimum(self, log: Log) -> bool:
        """Whether too few replicas are in sync for acks=all."""
        minimum = isr.effective_minimum(log.config.min_insync_replicas, self._replica_count)
        return len(self._isr) < minimum

    def append(
        self, records: Bytes, acks: int, origin: Origin, max_unpacked_bytes: int = UNLIMITED
    ) -> tuple[AppendInfo, bool]:
        """Append as leader; what was done, and whether the high watermark moved."""
        log = self._log_for(acks)
        info = log.append_as_leader(records, self.leader_epoch, origin, max_unpacked_bytes)
        return info, self.raise_high_watermark(log)

    def append_validated(self, checked: Validated, acks: int) -> tuple[AppendInfo, bool]:
        """The same with a batch that was validated elsewhere."""
        log = self._log_for(acks)
        return log.append_validated(checked, self.leader_epoch), self.raise_high_watermark(log)

    def _log_for(self, acks: int) -> Log:
        """The log, if this broker leads and may append with these acks."""
        log = self.log
        if log is None or not self.is_leader:
            log = self.leader_log()
        if acks == ALL_REPLICAS and self.is_under_minimum(log):
            raise NotEnoughReplicasError(
                f"{self.key} has {len(self._isr)} replicas in sync; min.insync.replicas asks for "
                f"{log.config.min_insync_replicas}"
            )
        return log

    def append_run(self, run: BatchRun, acks: int) -> tuple[AppendInfo, bool] | None:
        """The same for the first batches of a run, if that is all there is to do for their acks; else None."""
        log = self.log
        if log is None or not self.is_leader or self.goes_by_lane:
            return None
        if acks == ALL_REPLICAS and (self._replica_count > 1 or self.is_under_minimum(log)):
            return None
        info = log.append_run(run, self.leader_epoch)
        return None if info is None else (info, self.raise_high_watermark(log))

    def raise_high_watermark(self, log: Log) -> bool:
        """As far as every replica in sync has the log; True if it moved."""
        if self._replica_count == 1:
            return log.raise_high_watermark(log.end_offset)
        if self.is_under_minimum(log):
            return False
        offset = isr.high_watermark(self._node_id, log.end_offset, self._follower_ends, self._isr)
        return log.raise_high_watermark(offset)

    def follower_reached(self, node_id: int, end_offset: int, start_offset: int) -> None:
        """A follower's fetch says how far it is, and where its log starts."""
        if node_id not in self._replicas:
            return
        self._follower_ends[node_id] = end_offset
        self._follower_starts[node_id] = start_offset

    def low_watermark(self, log: Log) -> int:
        """What is below is gone on every replica."""
        if self._replica_count == 1:
            return log.start_offset
        starts = (self._follower_starts.get(node, -1) for node in self._replicas if node != self._node_id)
        return min(log.start_offset, *starts)
