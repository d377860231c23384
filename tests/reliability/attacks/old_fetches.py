"""Requests of sixty bytes for records in a format of long ago, which must be made anew one by one."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.records.builder import NewRecord, build_batch
from ottla.records.legacy.conversion import read_message_set
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, produce

TOPIC = "old"
MIB = 1 << 20
FETCHED_BYTES = 50 * MIB
DEAF_CLIENTS = 80


def attack(broker: Attacked, seed: int, share: float) -> None:
    """One client reads 50 MB of ten-byte records, and eighty more ask for them and never read."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC)
    batch = bytes(build_batch([NewRecord(1_700_000_000_000, None, b"ten bytes!", [])] * 50_000))
    count = max(2, int(FETCHED_BYTES * share) // len(batch))
    with Wire(broker) as wire:
        for _ in range(count):
            assert (
                wire.ask(PRODUCE, 9, produce(TOPIC, batch)).responses[0].partition_responses[0].error_code
                == 0
            )
    last = 50_000 * count
    with contextlib.ExitStack() as stack:
        for _ in range(max(2, int(DEAF_CLIENTS * share))):
            deaf = stack.enter_context(Wire(broker, receive_buffer_bytes=4096))
            for _ in range(10):
                deaf.send(FETCH, chance.choice((0, 1, 2, 3)), everything(chance.randrange(last)))
        wire = stack.enter_context(Wire(broker))
        offset = chance.randrange(last)
        for _ in range(4):
            offset += check_read(wire, chance.choice((0, 1, 2, 3)), offset)


def check_read(wire: Wire, version: int, offset: int) -> int:
    """How many records came; they are the right ones."""
    (answered,) = wire.ask(FETCH, version, everything(offset)).responses[0].partitions
    data = answered.records
    found = [record.offset for record in read_message_set(data, 0, len(data), max_output_bytes=64 * MIB)]
    assert found
    assert found == list(range(offset, offset + len(found)))
    return len(found)


def everything(offset: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCHED_BYTES)
    return FetchRequest(max_bytes=FETCHED_BYTES, topics=[FetchTopic(topic=TOPIC, partitions=[part])])
