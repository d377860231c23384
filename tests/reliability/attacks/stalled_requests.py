"""Connections that send much of a large request and then nothing: they hold memory that others need."""

from __future__ import annotations

import contextlib
import random
import struct
from concurrent.futures import ThreadPoolExecutor

from tests.reliability.attacks.brokers import Attacked
from tests.reliability.attacks.state import wait_for_metric
from tests.server.wire import PRODUCE, Wire, produce, records

TOPIC = "stalled"
MIB = 1 << 20
CONNECTIONS = 12
SENT_BYTES = 20 * MIB
MESSAGE_TOO_LARGE = 10


def attack(broker: Attacked, seed: int, share: float) -> None:
    """A dozen of them. Ordinary requests pass all the same, and the largest when the stalled ones are ended."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(max(2, int(CONNECTIONS * share)))]
        waiting = stack.enter_context(Wire(broker))
        for wire in wires:
            wire.send_bytes(struct.pack(">i", chance.randrange(30 * MIB, 90 * MIB)))
            wire.socket.settimeout(0.2)
            with contextlib.suppress(TimeoutError):  # it is not even read any more
                wire.send_bytes(bytes(SENT_BYTES))
        wait_for_metric(broker, "kafka_network_socketserver_memorypoolused", SENT_BYTES)
        for _ in range(5):
            answer = waiting.ask(PRODUCE, 9, produce(TOPIC, records(bytes(600_000))))
            assert answer.responses[0].partition_responses[0].error_code == 0
        # This one has to wait for what the others hold. It is too large for the topic, but it is read.
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(waiting.ask, PRODUCE, 9, produce(TOPIC, records(bytes(25 * MIB))))
            for _ in range(600):
                if asked.done():
                    break
                broker.clock.advance(500)
        answer = asked.result()
        assert answer.responses[0].partition_responses[0].error_code == MESSAGE_TOO_LARGE
