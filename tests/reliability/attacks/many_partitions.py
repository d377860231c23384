"""Thousands of partitions that are made, added and deleted by single requests."""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import PRODUCE, Wire, produce, records

PARTITIONS = 6_000
TOPICS = 1_000  # of the same number of partitions, in one request

_CREATE_TOPICS, _DELETE_TOPICS, _CREATE_PARTITIONS = 19, 20, 37
_TIMEOUT_MS = 300_000


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """One topic with all of them, one that grows to as many, many with a few; each is deleted at once."""
    count = max(300, int(PARTITIONS * share))
    topics = max(50, int(TOPICS * share))
    wide = [CreatableTopic(name="wide", num_partitions=count, replication_factor=1)]
    narrow = [
        CreatableTopic(name=f"narrow-{n}", num_partitions=count // topics, replication_factor=1)
        for n in range(topics)
    ]
    with Wire(broker) as wire:
        wire.socket.settimeout(_TIMEOUT_MS / 1000)
        _create(wire, wide)
        _check_last(wire, "wide", count)
        _delete(wire, ["wide"])
        _create(wire, [CreatableTopic(name="growing", num_partitions=1, replication_factor=1)])
        _grow(wire, "growing", count)
        _check_last(wire, "growing", count)
        _create(wire, narrow)
        _delete(wire, ["growing", *(topic.name for topic in narrow)])


def _create(wire: Wire, topics: list[CreatableTopic]) -> None:
    answer = wire.ask(_CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}


def _grow(wire: Wire, name: str, count: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=False)
    assert wire.ask(_CREATE_PARTITIONS, 3, request).results[0].error_code == ErrorCode.NONE


def _delete(wire: Wire, names: list[str]) -> None:
    answer = wire.ask(
        _DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=names, topics=[], timeout_ms=_TIMEOUT_MS)
    )
    assert {topic.error_code for topic in answer.responses} == {ErrorCode.NONE}


def _check_last(wire: Wire, topic: str, count: int) -> None:
    """The answer was honest: the last partition takes records."""
    answer = wire.ask(PRODUCE, 9, produce(topic, records(b"first"), partition=count - 1))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
