"""DescribeCluster, DescribeTopicPartitions and FindCoordinator: who is there, and who is responsible."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.conversation.talk import Talk, versions

MANY_SINCE = 4  # FindCoordinator with several keys
GROUP, TRANSACTION, UNKNOWN = 0, 1, 9


def script(talk: Talk) -> None:
    for version in versions(DescribeClusterRequest.API_KEY):
        _cluster(talk, version)
    for name, partitions in (("pages-a", 3), ("pages-b", 2), ("pages-c", 1)):
        talk.topic(name, partitions)
    _pages(talk)
    for version in versions(FindCoordinatorRequest.API_KEY):
        _coordinators(talk, version)


def _cluster(talk: Talk, version: int) -> None:
    talk.ask("who is there", version, DescribeClusterRequest())
    talk.ask("what may be done", version, DescribeClusterRequest(include_cluster_authorized_operations=True))
    for kind in (2, 0, 3):
        if version >= 1:
            talk.ask(f"endpoints of type {kind}", version, DescribeClusterRequest(endpoint_type=kind))
    if version >= 2:
        talk.ask("fenced brokers too", version, DescribeClusterRequest(include_fenced_brokers=True))


def _pages(talk: Talk) -> None:
    def ask(step: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        place = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
        topics = [TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=place)
        talk.ask(step, 0, request, only=None if names else _ours)

    both = ("pages-b", "pages-a")
    ask("one topic", "pages-a")
    ask("two topics", *both)
    ask("one twice", "pages-a", "pages-a")
    ask("an unknown topic", "nowhere", "pages-a")
    ask("a bad name", "a/b")
    ask("an empty name", "")
    ask("all topics")
    for limit in (1, 3, 4, 5, 0, -1):
        ask(f"at most {limit}", *both, limit=limit)
    for name, partition in (
        *(("pages-a", 1), ("pages-a", 3), ("pages-a", 9), ("pages-b", 0), ("pages-b", 1)),
        *(("pages-aa", 0), ("pages-z", 0), ("", 0), ("pages-a", -1)),
    ):
        ask(f"from {name} {partition} on", *both, cursor=(name, partition))
    ask("two from the middle on", *both, limit=2, cursor=("pages-a", 2))
    ask("none of an unknown topic", "nowhere", limit=1)
    ask("unknown behind the limit", "pages-a", "pages-zz", limit=3)


def _ours(response: Any) -> None:
    response.topics[:] = [topic for topic in response.topics if topic.name.startswith("pages-")]


def _coordinators(talk: Talk, version: int) -> None:
    for step, kind, key in (
        *(("a group", GROUP, "group"), ("an empty group", GROUP, "")),
        *(("an unknown kind", UNKNOWN, "key"), ("a negative kind", -1, "key")),
        *(("a transaction", TRANSACTION, "transaction"), ("an empty transaction", TRANSACTION, "")),
    ):
        if version >= 1 or kind == GROUP:
            talk.ask(step, version, FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))
    if version >= MANY_SINCE:
        talk.ask("two groups", version, FindCoordinatorRequest(coordinator_keys=["one", "two"]))
        talk.ask("the same group twice", version, FindCoordinatorRequest(coordinator_keys=["one", "one"]))
        talk.ask("no groups", version, FindCoordinatorRequest(coordinator_keys=[]))
