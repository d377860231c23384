"""Very many fetches that wait for one partition: one record wakes them all, and then they hang up."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from ottla.protocol import frame
from ottla.replica.purgatory import WAITER_WEIGHT
from ottla.replica.waits import MAX_FETCH_WEIGHT
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records, wait_until

TOPIC = "polled"
POLLS = 30_000
WAIT_MS = 300_000  # less than a connection may idle
A_CONNECTION = 60  # one more than a few, and the broker would not read on and not see that they hang up


def attack(broker: Any, seed: int, share: float) -> None:
    """All that may wait are woken, and answered; as many again hang up while they wait."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC)
    connections, polls = amounts(share)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(polls_from(offset=0))
        wait_until(lambda: waiting(broker) >= polls)
        with Wire(broker) as producer:
            producer.ask(PRODUCE, 9, produce(TOPIC, records(b"wake up")))
        woken = 0
        for wire in chance.sample(wires, len(wires)):
            for _ in range(A_CONNECTION):
                answer = wire.receive(FETCH, 12)[1]
                woken += bool(answer.responses[0].partitions[0].records)
        assert woken >= polls
        for wire in wires:
            wire.send_bytes(polls_from(offset=1))
        wait_until(lambda: waiting(broker) >= polls)
    wait_until(lambda: waiting(broker) < polls)


def amounts(share: float) -> tuple[int, int]:
    """How many connections there are, and how many of their polls the broker lets wait."""
    connections = max(8, int(POLLS * share) // A_CONNECTION)
    return connections, min(connections * A_CONNECTION, MAX_FETCH_WEIGHT // (WAITER_WEIGHT + 1))


def waiting(broker: Any) -> int:
    count: int = broker.broker.replicas.purgatories.fetch.delayed
    return count


def polls_from(offset: int, topic: str = TOPIC) -> bytes:
    asked = fetch(topic, offset=offset, max_wait_ms=WAIT_MS)
    return b"".join(
        part
        for number in range(A_CONNECTION)
        for part in frame.request_parts(FETCH, 12, number, "polls", asked)
    )
