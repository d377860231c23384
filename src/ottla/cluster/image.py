"""What the whole cluster looks like at one revision: brokers, topics, leaders, settings. Immutable.

A broker keeps one image and replaces it with the next. Nothing here knows where images are stored (store.py) or how
one becomes the next (controller.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker that has registered, and where clients reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    epoch: int = 0  # grows with each registration


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Who holds a partition. `leader` is -1 while no replica can lead."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_epoch: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic; partition n is `partitions[n]`."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionInfo, ...]
    config: Mapping[str, str] = field(default_factory=lambda: _NOTHING)  # what was set on the topic itself

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Everything, at `revision`."""

    cluster_id: str
    revision: int = 0
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    topic_names: Mapping[uuid.UUID, str] = field(default_factory=dict)
    # Dynamic settings: those of one broker by node id, and under None those of all brokers.
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by group id

    @property
    def controller_id(self) -> int:
        """Any broker can change the cluster; clients are told to ask the first one."""
        return min(self.brokers, default=-1)

    def partition(self, topic: str, index: int) -> PartitionInfo | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def topic_by_id(self, topic_id: uuid.UUID | None) -> TopicInfo | None:
        name = None if topic_id is None else self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)
