"""Members of consumer groups (KIP-848) for tests: they send the heartbeats that a client would."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.api.world import World
from tests.coordinator.grouping import GROUP, REBALANCE_MS, commit

SESSION_MS = 45_000

Partitions = dict[str, set[int]]


class Modern:
    """A consumer of the newer protocol. It does what its answers say, unless a test says otherwise."""

    def __init__(
        self,
        world: World,
        group: str = GROUP,
        *,
        member_id: str | None = None,
        instance: str | None = None,
        topics: tuple[str, ...] | None = ("t",),
        pattern: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = REBALANCE_MS,
    ) -> None:
        self.world = world
        self.group = group
        self.member_id = str(uuid.uuid4()) if member_id is None else member_id
        self.instance = instance
        self.topics = topics
        self.pattern = pattern
        self.assignor = assignor
        self.rebalance_ms = rebalance_ms
        self.epoch = 0
        self.has: Partitions = {}

    def send(self, *, version: int = 1, **fields: Any) -> Any:
        """A heartbeat with just these fields, besides who sends it."""
        given = {"member_id": self.member_id, "member_epoch": self.epoch, "instance_id": self.instance}
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, **{**given, **fields})
        return self.world.ask(request, version)

    def join(self, *, version: int = 1) -> int:
        """Send all that a member sends at first; the error code."""
        self.epoch, self.has = 0, {}
        return self._take(
            self.send(
                version=version,
                rebalance_timeout_ms=self.rebalance_ms,
                subscribed_topic_names=None if self.topics is None else list(self.topics),
                subscribed_topic_regex=self.pattern,
                server_assignor=self.assignor,
                topic_partitions=[],
            )
        )

    def beat(self, **fields: Any) -> int:
        """An ordinary heartbeat; what the answer assigns is what the member has then."""
        return self._take(self.send(**fields))

    def confirm(self) -> int:
        """Tell what it has, as a member does when that has changed."""
        return self.beat(topic_partitions=self.owned())

    def subscribe(self, *topics: str) -> int:
        self.topics = topics
        return self.beat(subscribed_topic_names=list(topics))

    def leave(self, epoch: int = -1) -> int:
        code: int = self.send(member_epoch=epoch).error_code
        return code

    def commit(self, offset: int, partition: int = 0, topic: str = "t", *, version: int = 9) -> int:
        return commit(
            self.world, self.group, offset, partition, topic, version=version,
            generation_id_or_member_epoch=self.epoch, member_id=self.member_id, group_instance_id=self.instance,
        )  # fmt: skip

    def owned(self) -> list[TopicPartitions]:
        topics = self.world.image.topics
        return [
            TopicPartitions(topic_id=topics[name].topic_id, partitions=sorted(numbers))
            for name, numbers in self.has.items()
            if name in topics
        ]

    def _take(self, answer: Any) -> int:
        code: int = answer.error_code
        if code:
            return code
        self.member_id, self.epoch = answer.member_id, answer.member_epoch
        if answer.assignment is not None:
            names = self.world.image.topic_names
            self.has = {
                names[entry.topic_id]: set(entry.partitions) for entry in answer.assignment.topic_partitions
            }
        return 0


def settle(*members: Modern, rounds: int = 6) -> None:
    """Let members send heartbeats until all have what they should have."""
    for _ in range(rounds):
        for member in members:
            assert member.confirm() == 0


def numbers(*members: Modern, topic: str = "t") -> list[int]:
    """All partitions that the members have, in order: twice what two of them have."""
    return sorted(number for member in members for number in member.has.get(topic, ()))


def state_of(world: World, group: str = GROUP) -> ConsumerGroup:
    (found,) = [
        state.consumer_groups[group]
        for state in world.services.groups.states()
        if group in state.consumer_groups
    ]
    return found


def described(world: World, group: str = GROUP, version: int = 1) -> Any:
    return world.ask(ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]
