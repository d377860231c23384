"""Very many fetches that wait for one partition, and whose time is over at the same moment."""

from __future__ import annotations

import contextlib
from typing import Any

from tests.reliability.attacks.long_polls import A_CONNECTION, WAIT_MS, amounts, polls_from, waiting
from tests.server.wire import FETCH, Wire, wait_until

TOPIC = "expiring"


def attack(broker: Any, seed: int, share: float) -> None:
    broker.create_topic(TOPIC)
    connections, polls = amounts(share)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(connections)]
        for wire in wires:
            wire.send_bytes(polls_from(0, TOPIC))
        wait_until(lambda: waiting(broker) >= polls)
        broker.clock.advance(WAIT_MS)
        for wire in wires:
            for _ in range(A_CONNECTION):
                assert not wire.receive(FETCH, 12)[1].responses[0].partitions[0].error_code
    wait_until(lambda: waiting(broker) < polls)
