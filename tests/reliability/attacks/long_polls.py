"""Very many fetches that wait for one partition: one record wakes them all, and then they hang up."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol import frame
from ottla.replica.purgatory import WAITER_WEIGHT
from ottla.replica.waits import MAX_FETCH_WEIGHT
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records, wait_until

TOPIC = "polled"
POLLS = 30_000
WAIT_MS = 300_000  # less than a connection may idle
_A_CONNECTION = 60  # one more than a few, and the broker would not read on and not see that they hang up


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """All that may wait are woken, and answered; as many again hang up while they wait, and others time out."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC)
    connections = max(8, int(POLLS * share) // _A_CONNECTION)
    polls = min(connections * _A_CONNECTION, MAX_FETCH_WEIGHT // (WAITER_WEIGHT + 1))
    waiting = lambda: broker.broker.replicas.purgatories.fetch.delayed  # noqa: E731
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(_polls(offset=0))
        wait_until(lambda: waiting() == polls)
        with Wire(broker) as producer:
            producer.ask(PRODUCE, 9, produce(TOPIC, records(b"wake up")))
        woken = 0
        for wire in chance.sample(wires, len(wires)):
            for _ in range(_A_CONNECTION):
                answer = wire.receive(FETCH, 12)[1]
                woken += bool(answer.responses[0].partitions[0].records)
        assert woken >= polls
        for wire in wires:
            wire.send_bytes(_polls(offset=1))
        wait_until(lambda: waiting() == polls)
    wait_until(lambda: waiting() == 0)
    _let_time_out(broker, polls // _A_CONNECTION)


def _let_time_out(broker: EmbeddedBroker, connections: int) -> None:
    waiting = lambda: broker.broker.replicas.purgatories.fetch.delayed  # noqa: E731
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(_polls(offset=1))
        wait_until(lambda: waiting() == connections * _A_CONNECTION)
        broker.clock.advance(WAIT_MS)
        for wire in wires:
            for _ in range(_A_CONNECTION):
                assert not wire.receive(FETCH, 12)[1].responses[0].partitions[0].error_code
    wait_until(lambda: waiting() == 0)


def _polls(offset: int) -> bytes:
    asked = fetch(TOPIC, offset=offset, max_wait_ms=WAIT_MS)
    return b"".join(
        part
        for number in range(_A_CONNECTION)
        for part in frame.request_parts(FETCH, 12, number, "polls", asked)
    )
