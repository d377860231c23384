"""What consumers of classic groups say to each other inside of JoinGroup and SyncGroup, where the broker reads it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ottla.internal_topics.consumer_group_records import Assigned
from ottla.internal_topics.fields import MalformedError, Reader
from ottla.internal_topics.packing import INT16, INT32, string

_NEWEST = 3
_PARTITIONS = [{"topic": "string", "partitions": ["int32"]}]
_NO_DATA = INT32.pack(-1)


class _Topic(Protocol):
    @property
    def topic_id(self) -> uuid.UUID: ...


class Topics(Protocol):
    """What the cluster's image knows of topics: consumers name them, the records of groups have their ids."""

    @property
    def topics(self) -> Mapping[str, _Topic]: ...
    @property
    def topic_names(self) -> Mapping[uuid.UUID, str]: ...


class Subscription(NamedTuple):
    """What a consumer wants, and has."""

    topics: frozenset[str]
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    rack_id: str | None


def read_subscription(data: bytes) -> Subscription:
    """MalformedError if it is not one."""
    reader = Reader(data)
    version = reader.integer("int16")
    fields: dict[str, Any] = {"topics": ["string"], "user_data": "bytes?"}
    if version >= 1:
        fields["owned"] = _PARTITIONS
    if version >= 2:
        fields["generation"] = "int32"
    if version >= 3:
        fields["rack_id"] = "string?"
    found = reader.struct(fields)
    owned = tuple((entry["topic"], tuple(entry["partitions"])) for entry in found.get("owned", ()))
    return Subscription(frozenset(found["topics"]), owned, found.get("rack_id") or None)


def read_assignment(data: bytes, image: Topics) -> Assigned:
    """The partitions of an assignment, as far as their topics are there; MalformedError if it is not one."""
    if not data:
        return {}
    found = Reader(data).struct({"version": "int16", "partitions": _PARTITIONS, "user_data": "bytes?"})
    if found["user_data"]:
        raise MalformedError("an assignment with data of its own")
    return {
        image.topics[entry["topic"]].topic_id: frozenset(entry["partitions"])
        for entry in found["partitions"]
        if entry["topic"] in image.topics and entry["partitions"]
    }


def owned_partitions(subscription: Subscription, image: Topics) -> list[tuple[uuid.UUID, list[int]]]:
    return [
        (image.topics[topic].topic_id, list(numbers))
        for topic, numbers in subscription.owned
        if topic in image.topics
    ]


def write_assignment(assigned: Assigned, subscription: bytes, image: Topics) -> bytes:
    """An assignment in the version that the subscription is written in."""
    version = min(Reader(subscription).integer("int16"), _NEWEST)
    topics = {
        image.topic_names[topic_id]: assigned[topic_id]
        for topic_id in assigned
        if topic_id in image.topic_names
    }
    parts = [INT16.pack(version), INT32.pack(len(topics))]
    for topic, numbers in sorted(topics.items()):
        parts += (string(topic), INT32.pack(len(numbers)), *map(INT32.pack, sorted(numbers)))
    return b"".join(parts) + _NO_DATA
