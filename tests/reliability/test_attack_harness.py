"""The harness of the attacks finds what it looks for."""

from __future__ import annotations

import time

import pytest

from tests.reliability.attacks import state, stories
from tests.reliability.attacks.brokers import Attacked, Inside, worst_turn_ms
from tests.reliability.attacks.state import State
from tests.server.wire import FETCH, Wire, fetch


def keeps_the_loop(broker: Inside, seed: int, share: float) -> None:
    def spin() -> None:
        until_ns = time.thread_time_ns() + 40_000_000
        while time.thread_time_ns() < until_ns:
            pass

    broker.call(spin)


def test_a_turn_that_takes_long_is_found() -> None:
    with pytest.raises(AssertionError, match="a turn of the loop took"):
        stories.run("busy", keeps_the_loop, seed=1, share=1.0)


def test_what_an_attack_leaves_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "WITHIN_S", 0.2)
    left: list[Wire] = []

    def leaves(broker: Attacked, seed: int, share: float) -> None:
        left.append(Wire(broker))
        left[0].send(FETCH, 12, fetch("good", offset=1 << 40, max_wait_ms=600_000))

    with pytest.raises(AssertionError, match="kafka_server_connections was 1, is 2"):
        stories.run("leaving", leaves, seed=1, share=1.0)
    left[0].socket.close()


def test_an_attack_that_is_not_answered_is_named() -> None:
    def breaks(broker: Attacked, seed: int, share: float) -> None:
        raise EOFError("the broker closed the connection")

    with pytest.raises(AssertionError, match="breaking did not get its answers"):
        stories.run("breaking", breaks, seed=1, share=1.0)


def test_only_what_is_worse_is_a_difference() -> None:
    waiting = 'kafka_server_purgatory_size{purgatory="Fetch"}'
    before = State({"kafka_server_connections": 3.0, waiting: 0.0}, round_ms=0.3)
    assert before.differences(State({"kafka_server_connections": 1.0, waiting: 900.0}, round_ms=0.7)) == []
    worse = before.differences(State({"kafka_server_connections": 4.0, waiting: 1100.0}, round_ms=0.9))
    assert [words.split(" was ")[0].split(" cost ")[0] for words in worse] == [
        "kafka_server_connections",
        waiting,
        "a round of the good client",
    ]


def test_the_worst_turn_is_the_upper_end_of_the_last_bucket_that_grew() -> None:
    before = {0.001: 5.0, 0.01: 6.0, 0.1: 9.0}
    assert worst_turn_ms(before, {0.001: 7.0, 0.01: 10.0, 0.1: 13.0}) == 10.0
    assert worst_turn_ms(before, {0.001: 7.0, 0.01: 10.0, 0.1: 14.0}) == 100.0
