"""What a broker is like before an attack, and must be again ten seconds after it: see `State`."""

from __future__ import annotations

import time
from typing import NamedTuple

from tests.reliability.attacks.beside import Beside
from tests.reliability.attacks.brokers import Attacked, Outside
from tests.reliability.attacks.neighbour import Neighbour

WITHIN_S = 10.0
LOOK_AGAIN_S = 0.05
_ROUNDS = 40
# What is looked at, and by how much it may be more than before.
_PURGED_AT = 1000  # requests that are over stay in Kafka's figure until there are more of them
_GAUGES = {
    "kafka_network_socketserver_memorypoolused": 0,
    "kafka_server_connections": 0,
    'kafka_server_purgatory_size{purgatory="Produce"}': _PURGED_AT,
    'kafka_server_purgatory_size{purgatory="Fetch"}': _PURGED_AT,
    'kafka_server_purgatory_size{purgatory="DeleteRecords"}': 0,
    "kafka_log_offline_dirs": 0,
}


class State(NamedTuple):
    """Memory that requests hold, connections, requests that wait, directories that are offline; and what it costs the
    loop to serve the good client once.

    Topics, records and what groups and producers are remembered by stay as they were left; each has its own limit.
    """

    gauges: dict[str, float]
    round_ms: float

    def differences(self, now: State) -> list[str]:
        """In what `now` is worse."""
        found = [
            f"{name} was {self.gauges[name]:.0f}, is {value:.0f}"
            for name, value in now.gauges.items()
            if value > self.gauges[name] + _GAUGES[name]
        ]
        if now.round_ms > 2 * self.round_ms + 0.2:
            found.append(f"a round of the good client cost {self.round_ms:.2f} ms, costs {now.round_ms:.2f}")
        return found


def state_of(broker: Attacked, neighbour: Neighbour) -> State:
    rounds, began_ns = neighbour.rounds, broker.loop_ns()
    neighbour.wait_for(_ROUNDS)
    took_ms = (broker.loop_ns() - began_ns) / 1e6
    round_ms = took_ms / (neighbour.rounds - rounds)
    metrics = broker.metrics()
    return State({name: metrics[name] for name in _GAUGES}, round_ms)


def wait_until_as_before(broker: Attacked, neighbour: Neighbour, before: State) -> None:
    deadline = time.monotonic() + WITHIN_S
    while differences := before.differences(state_of(broker, neighbour)):
        assert time.monotonic() < deadline, f"{WITHIN_S:.0f} s after the attack: {'; '.join(differences)}"
        time.sleep(LOOK_AGAIN_S)


def wait_for_metric(broker: Attacked, name: str, at_least: float) -> None:
    """Until it has risen so far."""
    deadline = time.monotonic() + 60
    while broker.metrics()[name] < at_least:
        assert time.monotonic() < deadline, f"{name} did not reach {at_least}"
        time.sleep(LOOK_AGAIN_S)


class MemoryWatch(Beside):
    """The most memory that a broker had while the block lasted, above what it had when it began."""

    def __init__(self, broker: Outside) -> None:
        super().__init__()
        self._broker = broker
        self.base_bytes = broker.memory_bytes()
        self.peak_bytes = self.base_bytes

    @property
    def grown_bytes(self) -> int:
        return self.peak_bytes - self.base_bytes

    def work(self) -> None:
        while self.goes_on(0.002):
            self.peak_bytes = max(self.peak_bytes, self._broker.memory_bytes())
