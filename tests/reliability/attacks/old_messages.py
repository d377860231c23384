"""Produce requests in a format of long ago, made of nothing but the smallest messages: each must be looked at."""

from __future__ import annotations

import random

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, fetch

MIB = 1 << 20
SENT_BYTES = 20 * MIB


def attack(broker: Attacked, seed: int, share: float) -> None:
    """One request to a topic that takes so much at once, and one to a topic that measures each message."""
    chance = random.Random(seed)
    for topic, limit in (("old-wide", 100 * MIB), ("old-narrow", 1000)):
        broker.create_topic(topic, config={"max.message.bytes": limit})
        magic = chance.choice((0, 1))
        message = build_message_set([LegacyRecord(0, -1, 0, None, b"")], magic)
        count = max(2 * MIB, int(SENT_BYTES * share)) // len(message)
        cut_off = message[: chance.randrange(len(message))]
        part = PartitionProduceData(index=0, records=memoryview(message * count + cut_off))
        request = ProduceRequest(
            acks=1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
        )
        with Wire(broker) as wire:
            answer = wire.ask(PRODUCE, chance.choice((0, 1, 2)), request)
            (slot,) = answer.responses[0].partition_responses
            assert (slot.error_code, slot.base_offset) == (0, 0)
            end = wire.ask(FETCH, 4, fetch(topic, count)).responses[0].partitions[0].high_watermark
        assert end == count
