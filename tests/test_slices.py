"""Long work takes turns with everything else, and with other long work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any

import pytest

from ottla.slices import Slices
from ottla.stall_watch import StallWatch


class Loop:
    """Turns of a loop, one at a time; every look at the clock is a millisecond later."""

    def __init__(self) -> None:
        self._ready: list[Callable[[], None]] = []
        self._now_ms = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._ready.append(callback)

    def monotonic_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms

    def turn(self) -> None:
        ready, self._ready = self._ready, []
        for callback in ready:
            callback()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def slices(loop: Loop) -> Slices:
    made: Any = loop
    return Slices(made, StallWatch())


def steps(name: str, count: int, seen: list[str]) -> Generator[None, None, str]:
    for number in range(count):
        seen.append(f"{name}{number}")
        yield
    return name


def never() -> None:
    raise AssertionError("this was not to fail")


def test_only_a_few_steps_are_done_in_a_turn_and_all_in_the_end(loop: Loop, slices: Slices) -> None:
    seen: list[str] = []
    done: list[str] = []
    slices.add(steps("a", 10, seen), done.append, never, "a")
    assert not seen  # nothing before the next turn
    loop.turn()
    assert 0 < len(seen) < 10
    while len(slices):
        loop.turn()
    assert seen == [f"a{number}" for number in range(10)]
    assert done == ["a"]


def test_those_who_have_work_take_turns(loop: Loop, slices: Slices) -> None:
    seen: list[str] = []
    for name in "ab":
        slices.add(steps(name, 4, seen), lambda _: None, never, name)
    while len(slices):
        loop.turn()
    assert seen == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


def test_few_are_begun_at_a_time(loop: Loop, slices: Slices) -> None:
    seen: list[str] = []
    for name in "abcdefgh":
        slices.add(steps(name, 20, seen), lambda _: None, never, name)
    for _ in range(10):
        loop.turn()
    assert {step[0] for step in seen} == set("abcd")
    while len(slices):
        loop.turn()
    assert len(seen) == 8 * 20


def test_work_that_fails_is_told_and_holds_nobody_up(
    loop: Loop, slices: Slices, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Generator[None, None, None]:
        yield
        raise RuntimeError("broken")

    seen: list[str] = []
    failed: list[str] = []
    with caplog.at_level(logging.ERROR):
        slices.add(broken(), lambda _: None, lambda: failed.append("broken"), "the broken one")
        slices.add(steps("a", 5, seen), lambda _: None, never, "a")
        while len(slices):
            loop.turn()
    assert failed == ["broken"]
    assert len(seen) == 5
    assert "the broken one failed" in caplog.text


def test_what_is_told_of_the_end_may_bring_more_work(loop: Loop, slices: Slices) -> None:
    seen: list[str] = []
    more = lambda _: slices.call(lambda: seen.append("more"), "more")  # noqa: E731
    slices.add(steps("a", 1, seen), more, never, "a")
    for _ in range(5):
        loop.turn()
    assert seen == ["a0", "more"]
    assert len(slices) == 0
