"""The good client beside an attack: it asks every 5 ms, and every answer must come and be right."""

from __future__ import annotations

import time
from typing import Self

from tests.reliability.attacks.beside import Beside
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records

TOPIC = "good"
PAUSE_S = 0.005
TURN_MS = 40.0  # of processor time that one turn may take: most take 10, and twice that on a loaded machine


class Neighbour(Beside):
    """Writes a record to its own topic and reads it back, again and again, while the block lasts."""

    def __init__(self, broker: Attacked) -> None:
        super().__init__()
        self._broker = broker
        self.rounds = 0
        self.longest_s = 0.0

    def __enter__(self) -> Self:
        self._broker.create_topic(TOPIC)
        return super().__enter__()

    def work(self) -> None:
        with Wire(self._broker) as wire:
            while self.goes_on(PAUSE_S):
                began = time.monotonic()
                self._ask(wire)
                self.longest_s = max(self.longest_s, time.monotonic() - began)

    def _ask(self, wire: Wire) -> None:
        value = str(self.rounds).encode()
        answer = wire.ask(PRODUCE, 9, produce(TOPIC, records(value)))
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code == 0
        answer = wire.ask(FETCH, 4, fetch(TOPIC, offset=partition.base_offset))
        assert value in bytes(answer.responses[0].partitions[0].records)
        self.rounds += 1

    def wait_for(self, rounds: int) -> None:
        """Until it was served so many times more."""
        until = self.rounds + rounds
        while self.rounds < until and self.is_alive:
            self.goes_on(PAUSE_S)
