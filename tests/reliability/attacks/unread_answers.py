"""Clients that ask for large answers, and for many, and read none of them."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol import frame
from ottla.protocol.messages.metadata import MetadataRequest
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records

METADATA = 3
CLIENTS = 2_000
PARTITIONS = 500
MIB = 1 << 20


def attack(broker: Attacked, seed: int, share: float) -> None:
    """Half of them want to know of every partition, the others the same records, again and again."""
    chance = random.Random(seed)
    broker.create_topic("unread", max(100, int(PARTITIONS * share)))
    with Wire(broker) as wire:
        for _ in range(4):
            wire.ask(PRODUCE, 9, produce("unread", records(bytes(1_000_000))))
    asked = {
        METADATA: (9, MetadataRequest(topics=None)),
        FETCH: (12, fetch("unread", partition_max_bytes=8 * MIB)),
    }
    with contextlib.ExitStack() as stack:
        for _ in range(max(20, int(CLIENTS * share))):
            wire = stack.enter_context(Wire(broker, receive_buffer_bytes=4096))
            key = chance.choice(list(asked))
            version, message = asked[key]
            wire.send_bytes(b"".join(frame.request_parts(key, version, 1, "deaf", message)) * 40)
