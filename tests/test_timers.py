"""What a coordinator has to do, over several turns of the loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from ottla.testing.runtime import SimulatedRuntime
from ottla.timers import TURN_MS, Timers


def working(runtime: SimulatedRuntime, done: list[int], number: int) -> Callable[[], None]:
    """Something that takes a millisecond."""

    def work() -> None:
        done.append(number)
        runtime.sleep_ms(1)

    return work


def test_what_is_due_at_once_is_done_in_several_turns() -> None:
    runtime = SimulatedRuntime(queued=True)
    timers, done = Timers(runtime), list[int]()
    for number in range(100):
        timers.call_later(10, working(runtime, done, number))
    runtime.advance(10)
    shares = [len(done)]
    while runtime.run_one():
        shares.append(len(done) - sum(shares))
    assert done == list(range(100))
    assert max(shares) <= TURN_MS


def test_what_comes_while_others_are_done_has_to_wait_for_the_next_turn() -> None:
    runtime = SimulatedRuntime(queued=True)
    timers, done = Timers(runtime), list[int]()

    def again() -> None:
        done.append(len(done))
        timers.call_soon(again)

    timers.call_soon(again)
    for count in range(1, 4):
        assert runtime.run_one()
        assert len(done) == count


def test_one_that_fails_keeps_nobody_from_being_called() -> None:
    runtime = SimulatedRuntime(queued=True)
    timers, done = Timers(runtime), list[int]()

    def fails() -> None:
        raise ValueError

    timers.call_soon(fails)
    timers.call_soon(partial(done.append, 1))
    try:
        runtime.run_pending()
    except ValueError:
        runtime.run_pending()
    assert done == [1]


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=30))
def test_all_are_called_in_time_but_those_that_were_cancelled(delays: list[tuple[int, bool]]) -> None:
    runtime = SimulatedRuntime(queued=True)
    timers, called = Timers(runtime), list[int]()
    called_later = [
        timers.call_later(delay_ms, partial(called.append, number))
        for number, (delay_ms, _) in enumerate(delays)
    ]
    for timer, (_, is_cancelled) in zip(called_later, delays, strict=True):
        if is_cancelled:
            timer.cancel()
    kept = [number for number, (_, is_cancelled) in enumerate(delays) if not is_cancelled]
    for now_ms in range(52):
        runtime.run_pending()
        assert called == sorted(
            (number for number in kept if delays[number][0] <= now_ms),
            key=lambda number: (delays[number][0], number),
        )
        runtime.advance(1)


def test_cancelled_timers_do_not_pile_up() -> None:
    runtime = SimulatedRuntime(queued=True)
    timers = Timers(runtime)
    for _ in range(10_000):
        timers.call_later(30_000, lambda: None).cancel()
    assert timers.size < 2_100
