"""Connections with much to do take turns, and one turn of the loop has no more of them than fit into it."""

from __future__ import annotations

from ottla.server.turns import TURN_MS, SessionTurns
from ottla.testing.runtime import SimulatedRuntime


class Busy:
    """Has so many requests, each of which takes a millisecond."""

    def __init__(
        self, runtime: SimulatedRuntime, turns: SessionTurns, requests: int, done: list[Busy]
    ) -> None:
        self._runtime, self._turns = runtime, turns
        self.requests = requests
        self._done = done

    def take_turn(self) -> None:
        self._runtime.sleep_ms(1)
        self._done.append(self)
        self.requests -= 1
        if self.requests:
            self._turns.append(self)


def test_each_has_its_turn_before_any_has_another() -> None:
    runtime = SimulatedRuntime(queued=True)
    turns = SessionTurns(runtime)
    done: list[Busy] = []
    busy = [Busy(runtime, turns, 3, done) for _ in range(10)]
    for connection in busy:
        turns.append(connection)
    while runtime.run_one():
        pass
    assert done == busy * 3


def test_a_turn_of_the_loop_ends_after_a_few_milliseconds() -> None:
    runtime = SimulatedRuntime(queued=True)
    turns = SessionTurns(runtime)
    done: list[Busy] = []
    for _ in range(10):
        turns.append(Busy(runtime, turns, 1, done))
    before = 0
    calls = 0
    while runtime.run_one():
        assert 0 < len(done) - before <= TURN_MS
        before = len(done)
        calls += 1
    assert (len(done), calls) == (10, 3)
