"""Very many fetches that wait for one partition: one record wakes them all, and then they hang up."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol import frame
from tests.reliability.attacks.brokers import Attacked
from tests.reliability.attacks.state import wait_for_metric
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records

TOPIC = "polled"
POLLS = 20_000  # as many as may wait
FOREVER_MS = 600_000
TOGETHER_MS = 2_000
_A_CONNECTION = 60  # one more than a few, and the broker would not read on and not see that they hang up
_WAITING = 'kafka_server_purgatory_size{purgatory="Fetch"}'


def attack(broker: Attacked, seed: int, share: float) -> None:
    """All of them are woken, and answered; as many again hang up while they wait, or time out together."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC)
    connections = max(8, int(POLLS * share) // _A_CONNECTION)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(_polls(offset=0))
        wait_for_metric(broker, _WAITING, connections * _A_CONNECTION)
        with Wire(broker) as producer:
            producer.ask(PRODUCE, 9, produce(TOPIC, records(b"wake up")))
        for wire in chance.sample(wires, len(wires)):
            for _ in range(_A_CONNECTION):
                answer = wire.receive(FETCH, 12)[1]
                assert answer.responses[0].partitions[0].records
        for wire in wires:
            wire.send_bytes(_polls(offset=1))
        wait_for_metric(broker, _WAITING, connections * _A_CONNECTION)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(_polls(offset=1, wait_ms=TOGETHER_MS))
        for wire in wires:
            for _ in range(_A_CONNECTION):
                assert not wire.receive(FETCH, 12)[1].responses[0].partitions[0].records


def _polls(offset: int, wait_ms: int = FOREVER_MS) -> bytes:
    asked = fetch(TOPIC, offset=offset, max_wait_ms=wait_ms)
    return b"".join(
        part
        for number in range(_A_CONNECTION)
        for part in frame.request_parts(FETCH, 12, number, "polls", asked)
    )
