"""The group coordinator of a broker, put together."""

from __future__ import annotations

from collections.abc import Callable

from ottla.cluster.image import ClusterImage
from ottla.cluster.metadata import Metadata
from ottla.config import BrokerConfig
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.offsets.room import Room
from ottla.coordinator.runtime import Coordinator, InternalTopic
from ottla.internal_topics.group_records import GroupRecord, GroupRecordFormat
from ottla.replica.manager import ReplicaManager
from ottla.runtime import LoopRuntime

OFFSETS_TOPIC = "__consumer_offsets"


class GroupCoordinator(Coordinator[GroupState, GroupRecord]):
    """All groups that this broker looks after."""

    def __init__(
        self, config: BrokerConfig, metadata: Metadata, replicas: ReplicaManager, runtime: LoopRuntime
    ) -> None:
        topic = InternalTopic(
            OFFSETS_TOPIC,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
            config.offsets_commit_timeout_ms,
        )
        room = Room(config)
        super().__init__(
            topic,
            lambda shard: GroupState(shard, config, lambda: metadata.image, room),
            GroupRecordFormat(),
            metadata,
            replicas,
            runtime,
        )

    def apply_image(self, old: ClusterImage, new: ClusterImage, ready: Callable[[], None]) -> None:
        super().apply_image(old, new, ready)
        if old.topics is not new.topics:
            changed = frozenset(
                name
                for name in {*old.topics, *new.topics}
                if old.topics.get(name) is not new.topics.get(name)
            )
            deleted = frozenset(
                topic.name for topic in old.topics.values() if topic.topic_id not in new.topic_names
            )
            are_new = any(topic_id not in old.topic_names for topic_id in new.topic_names)
            self.run_everywhere(
                lambda state, now_ms: state.follow_topics(changed, deleted, are_new, now_ms),
                lambda answers: None,
            )
