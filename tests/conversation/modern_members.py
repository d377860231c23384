"""Members of consumer groups (KIP-848), as scripts tell them what to say."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.conversation.talk import Talk

REBALANCE_MS = 60_000
NEWEST = 1


class Modern:
    """One member of a group. What it sends is written down under the name of its step."""

    def __init__(
        self, talk: Talk, group: str, name: str, version: int = NEWEST, instance: str | None = None
    ) -> None:
        self.talk = talk
        self.group = group
        self.name = name
        self.version = version
        self.instance = instance
        self.epoch = 0

    def beating(self, **other: Any) -> ConsumerGroupHeartbeatRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.name,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            **other,
        }
        return ConsumerGroupHeartbeatRequest(**fields)

    def joining(self, *topics: str, **other: Any) -> ConsumerGroupHeartbeatRequest:
        fields: dict[str, Any] = {
            "member_epoch": 0,
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": list(topics),
            "topic_partitions": [],
            **other,
        }
        return self.beating(**fields)

    def ask(self, step: str, request: ConsumerGroupHeartbeatRequest) -> Any:
        response = self.talk.ask(step, self.version, request)
        if response is not None and not response.error_code:
            self.epoch = response.member_epoch
        return response

    def join(self, step: str, *topics: str, **other: Any) -> Any:
        return self.ask(step, self.joining(*topics, **other))

    def beat(self, step: str, **other: Any) -> Any:
        return self.ask(step, self.beating(**other))


def has(topic_id: UUID, *numbers: int) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=list(numbers))]


def describe(talk: Talk, step: str, *groups: str, version: int = NEWEST, **other: Any) -> Any:
    return talk.ask(step, version, ConsumerGroupDescribeRequest(group_ids=list(groups), **other))
