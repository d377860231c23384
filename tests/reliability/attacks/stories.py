"""Every attack with a good client beside it: no turn of the loop takes long, memory stays within what is configured,
and afterwards all is as before.

What one turn took is told by the broker's stall watch, in processor time: that is what the request cost, however busy
the machine is. Memory is that of a process with nothing in it but the broker.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from ottla.config import BrokerConfig
from tests.reliability.attacks import (
    cold_reads,
    fetch_sessions,
    group_members,
    group_metadata,
    large_requests,
    long_polls,
    made_up_ids,
    many_partitions,
    metadata,
    old_fetches,
    old_messages,
    packed_batches,
    producer_ids,
    scrapes,
    stalled_requests,
    topic_patterns,
    unread_answers,
)
from tests.reliability.attacks.brokers import Attacked, Inside, Outside, worst_turn_ms
from tests.reliability.attacks.neighbour import TURN_MS, Neighbour
from tests.reliability.attacks.state import MemoryWatch, state_of, wait_until_as_before
from tests.reliability.scenarios import Case
from tests.server import wire

Attack = Callable[[Any, int, float], None]  # on a broker, with a seed, at a share of its full size

ATTACKS: dict[str, Attack] = {
    "packed batches": packed_batches.attack,
    "old fetches": old_fetches.attack,
    "old messages": old_messages.attack,
    "stalled requests": stalled_requests.attack,
    "long polls": long_polls.attack,
    "cold reads": cold_reads.attack,
    "unread answers": unread_answers.attack,
    "scrapes": scrapes.attack,
    "producer ids": producer_ids.attack,
    "many partitions": many_partitions.attack,
    "fetch sessions": fetch_sessions.attack,
    "group metadata": group_metadata.attack,
    "topic patterns": topic_patterns.attack,
    "group members": group_members.attack,
    "made-up ids": made_up_ids.attack,
    "large requests": large_requests.attack,
    "metadata": metadata.attack,
}
ALL_AT_ONCE = "all at once"
MIB = 1 << 20
BUDGET_BYTES = BrokerConfig().queued_max_request_bytes
SLACK_BYTES = 64 * MIB
# What the limits of docs/reliability.md let these make the broker remember: most of it 100,000 producers.
REMEMBERING = {"made-up ids"}
REMEMBERED_BYTES = 100 * MIB
PATIENCE_S = 900.0
WAIT_MS = 100.0  # that the good client may have to wait at the full size


class Measured(NamedTuple):
    """What a story came to."""

    worst_turn_ms: float
    memory_bytes: int  # the most, above what the broker had before

    def __str__(self) -> str:
        return f"turns of up to {self.worst_turn_ms:.0f} ms, {self.memory_bytes / MIB:.0f} MiB more memory"


def moves_the_clock(attack: Attack) -> bool:
    """Together with others such an attack has to wait until the time has passed."""
    return ".clock." in inspect.getsource(sys.modules[attack.__module__])


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """Each attack at its full size, or at a `share` of it, and then all of them together."""
    for name, attack in ATTACKS.items():
        yield Case(name, name, partial(_tell, name, {name: attack}, seed, share))
    yield Case(ALL_AT_ONCE, ALL_AT_ONCE, partial(_tell, ALL_AT_ONCE, ATTACKS, seed, share))


def _tell(name: str, attacks: Mapping[str, Attack], seed: int, share: float) -> None:
    wire.TIMEOUT_S = PATIENCE_S  # an attacker waits longer for the answer to what is much work
    print(f"{name}: {run_outside(attacks, seed, share)}", flush=True)


def run_outside(
    attacks: Mapping[str, Attack], seed: int, share: float, bound_ms: float = WAIT_MS
) -> Measured:
    """Against a broker in a process of its own."""
    with Outside(in_real_time=len(attacks) > 1) as broker:
        warm_up(broker)
        turns = broker.turn_counts()
        with MemoryWatch(broker) as memory:
            _beside_a_neighbour(broker, attacks, seed, share)
        # An attack may begin to count anew, but not for the others.
        worst_ms = worst_turn_ms(turns, broker.turn_counts()) if len(attacks) > 1 else broker.worst_turn_ms()
        measured = Measured(worst_ms, memory.grown_bytes)
        assert measured.worst_turn_ms <= bound_ms, f"{measured}; the broker said:\n{broker.log_text()}"
        remembered_bytes = REMEMBERED_BYTES if REMEMBERING & attacks.keys() else 0
        assert measured.memory_bytes < BUDGET_BYTES + SLACK_BYTES + remembered_bytes, str(measured)
        return measured


def run(name: str, attack: Attack, seed: int, share: float) -> None:
    """Against a broker in this process: a start is cheap there, and no time need pass."""
    with Inside() as broker:
        _beside_a_neighbour(broker, {name: attack}, seed, share)
        worst_ms = broker.worst_turn_ms()
        assert worst_ms < TURN_MS, f"{name}: a turn of the loop took {worst_ms:.0f} ms"


def warm_up(broker: Attacked) -> None:
    """So that what the first requests make stays out of the figures."""
    for name in ("warm-1", "warm-2"):
        broker.create_topic(name)
    broker.metrics()


def _beside_a_neighbour(broker: Attacked, attacks: Mapping[str, Attack], seed: int, share: float) -> None:
    """Each attack on a thread of its own. What the broker did before them is not counted."""
    with Neighbour(broker) as neighbour:
        before = state_of(broker, neighbour)
        broker.worst_turn_ms()
        with ThreadPoolExecutor(len(attacks)) as pool:
            running = {name: pool.submit(attack, broker, seed, share) for name, attack in attacks.items()}
        for name, attack in running.items():
            _check_end(name, attack.exception(), is_alone=len(attacks) == 1)
        wait_until_as_before(broker, neighbour, before)


def _check_end(name: str, error: BaseException | None, *, is_alone: bool) -> None:
    """Alone an attacker gets what it expects. Beside others it may find that they have used up a limit."""
    if isinstance(error, AssertionError) and not is_alone:
        print(f"{name} was not alone: {error!r}", flush=True)
    elif error is not None:
        raise AssertionError(f"{name} did not get its answers: {error!r}") from error
