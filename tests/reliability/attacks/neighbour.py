"""The good client beside an attack: it asks every 5 ms, and every answer must come and be right."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records

TOPIC = "good"
PAUSE_S = 0.005
TURN_MS = 25.0  # of processor time that one turn of the loop may take: 10, with room for a loaded machine


class Neighbour:
    """Writes a record to its own topic and reads it back, again and again, while the block lasts."""

    def __init__(self, broker: Attacked) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="neighbour")
        self.rounds = 0
        self.longest_s = 0.0

    def __enter__(self) -> Neighbour:
        self._broker.create_topic(TOPIC)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise AssertionError("the good client was not served") from self._error

    def _live(self) -> None:
        try:
            with Wire(self._broker) as wire:
                while not self._stop.wait(PAUSE_S):
                    began = time.monotonic()
                    self._ask(wire)
                    self.longest_s = max(self.longest_s, time.monotonic() - began)
        except BaseException as error:  # noqa: BLE001 - raised again where the block ends
            self._error = error

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
        while self.rounds < until and self._thread.is_alive():
            self._stop.wait(PAUSE_S)
