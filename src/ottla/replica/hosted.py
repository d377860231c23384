"""The partitions that this broker has a replica of, and what to say about the others."""

from __future__ import annotations

import uuid

from ottla.cluster.image import ClusterImage
from ottla.errors import BrokerError, NotLeaderOrFollowerError, UnknownTopicOrPartitionError
from ottla.names import TopicPartition
from ottla.replica.partition import Partition


class Hosted:
    """Found by topic and number; changed only by assignments.py."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.image: ClusterImage | None = None

    def find(self, key: TopicPartition, topic_id: uuid.UUID | None = None) -> Partition:
        """The partition, checked to be of that topic id where one is given."""
        partition = self.partitions.get(key)
        if partition is None:
            raise self.missing(key)
        if topic_id is not None:
            partition.check_topic_id(topic_id)
        return partition

    def missing(self, key: TopicPartition) -> BrokerError:
        """Why a partition is not here: others may know it, or nobody does."""
        image = self.image
        if image is not None and image.partition(key.topic, key.partition) is not None:
            return NotLeaderOrFollowerError(f"{key} is not on this broker")
        return UnknownTopicOrPartitionError(f"{key} does not exist")
