"""Every attack with a good client beside it: no turn of the loop takes long, and afterwards all is as before.

What one turn took is told by the broker's stall watch, in processor time: that is what the request cost, however busy
the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ottla.testing.embedded import EmbeddedBroker
from tests.reliability.attacks import (
    large_requests,
    long_polls,
    metadata,
    old_fetches,
    old_messages,
    packed_batches,
    producer_ids,
    scrapes,
    stalled_requests,
)
from tests.reliability.attacks.neighbour import TURN_MS, Neighbour
from tests.reliability.scenarios import Case

Attack = Callable[[EmbeddedBroker, int, float], None]

ATTACKS: dict[str, Attack] = {
    "packed batches": packed_batches.attack,
    "old fetches": old_fetches.attack,
    "old messages": old_messages.attack,
    "stalled requests": stalled_requests.attack,
    "long polls": long_polls.attack,
    "scrapes": scrapes.attack,
    "producer ids": producer_ids.attack,
    "large requests": large_requests.attack,
    "metadata": metadata.attack,
}
WORST_MS: dict[str, float] = {}  # what was measured, for whoever wants to print it


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """Each attack at its full size, or at a `share` of it."""
    for name, attack in ATTACKS.items():
        yield Case(name, name, partial(run, name, attack, seed, share))


def run(name: str, attack: Attack, seed: int, share: float, bound_ms: float = TURN_MS) -> None:
    with EmbeddedBroker({"log.cleaner.enable": "false"}, http=True) as broker, Neighbour(broker) as neighbour:
        garbage = broker.broker.garbage
        broker.call(garbage.take_over)  # as `ottla serve` does
        try:
            neighbour.wait_for(20)
            broker.worst_turn_ms()
            attack(broker, seed, share)
            neighbour.wait_for(20)
            WORST_MS[name] = broker.worst_turn_ms()
        finally:
            garbage.give_back()
        assert WORST_MS[name] < bound_ms, f"{name}: a turn of the loop took {WORST_MS[name]:.0f} ms"
