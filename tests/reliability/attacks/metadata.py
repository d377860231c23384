"""Small requests for the metadata of everything, and large ones for that of nothing."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import Wire

METADATA, DESCRIBE_TOPIC_PARTITIONS = 3, 75
TOPIC = "wide"
PARTITIONS = 10_000
CLIENTS = 20
NAMES = 99_990


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """Twenty clients ask for all topics, each more than once, and one for names that nobody has. Making the topic is
    not what is measured here."""
    chance = random.Random(seed)
    partitions = max(1_000, int(PARTITIONS * share))
    for number in range(5):
        broker.create_topic(f"{TOPIC}-{number}", partitions // 5)
    broker.worst_turn_ms()
    count = max(5_000, int(NAMES * share))
    names = [MetadataRequestTopic(name=f"nobody-{number}") for number in range(count)]
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(CLIENTS)]
        asked = []
        for wire in wires:
            for _ in range(2):
                version = chance.choice((1, 5, 9, 12))
                wire.send(METADATA, version, MetadataRequest(topics=None))
                asked.append((wire, version))
        unknown = stack.enter_context(Wire(broker))
        unknown.send(METADATA, 9, MetadataRequest(topics=names, allow_auto_topic_creation=False))
        pages = stack.enter_context(Wire(broker))
        some = [TopicRequest(name=topic.name or "") for topic in names[:9_000]]
        pages.send(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest(topics=some))
        for wire, version in asked:
            found = {topic.name: len(topic.partitions) for topic in wire.receive(METADATA, version)[1].topics}
            assert [found[f"{TOPIC}-{number}"] for number in range(5)] == [partitions // 5] * 5
        assert len(unknown.receive(METADATA, 9)[1].topics) == count
        assert len(pages.receive(DESCRIBE_TOPIC_PARTITIONS, 0)[1].topics) == len(some)
