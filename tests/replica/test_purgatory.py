"""Waiting requests: each is answered exactly once, by an event or by the clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.replica.purgatory import WAITER_WEIGHT, Purgatory, Waiter
from ottla.testing.runtime import SimulatedRuntime


class Wish(Waiter[str]):
    """Waits until `ready` holds one of its keys."""

    def __init__(self, keys: set[str], ready: set[str], then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.keys = keys
        self.ready = ready
        self.then = then
        self.told: list[str] = []
        self.tries = 0

    def can_complete(self, key: str | None) -> bool:
        self.tries += 1
        assert key is None or key in self.keys
        return bool(self.keys & self.ready)

    def complete(self) -> None:
        self.told.append("complete")
        self.then()

    def expire(self) -> None:
        self.told.append("expire")


@pytest.fixture
def runtime() -> SimulatedRuntime:
    return SimulatedRuntime()


@pytest.fixture
def purgatory(runtime: SimulatedRuntime) -> Purgatory[str]:
    return Purgatory(runtime, purge_interval=10)


def test_what_can_be_completed_never_waits(purgatory: Purgatory[str], runtime: SimulatedRuntime) -> None:
    wish = Wish({"a"}, {"a"})
    assert purgatory.try_complete_else_watch(wish, ["a"], 100)
    assert (wish.told, wish.tries, purgatory.size, runtime.timers) == (["complete"], 1, 0, 0)


def test_what_cannot_be_completed_waits(purgatory: Purgatory[str]) -> None:
    wish = Wish({"a"}, set())
    assert not purgatory.try_complete_else_watch(wish, ["a"], 100)
    assert (wish.tries, purgatory.size, purgatory.delayed) == (1, 1, 1)


def test_an_event_completes_only_who_watches_its_key(purgatory: Purgatory[str]) -> None:
    ready: set[str] = set()
    one, other, both = Wish({"a"}, ready), Wish({"b"}, ready), Wish({"a", "b"}, ready)
    for wish in (one, other, both):
        purgatory.try_complete_else_watch(wish, wish.keys, 100)
    assert purgatory.check("a") == 0
    ready.add("a")
    assert purgatory.check("a") == 2
    assert (one.told, other.told, both.told) == (["complete"], [], ["complete"])
    assert purgatory.check("a") == 0


def test_a_wait_expires_at_its_time_and_not_before(
    purgatory: Purgatory[str], runtime: SimulatedRuntime
) -> None:
    soon, later = Wish({"a"}, set()), Wish({"a"}, set())
    purgatory.try_complete_else_watch(later, ["a"], 5000)
    purgatory.try_complete_else_watch(soon, ["a"], 70)
    runtime.advance(69)
    assert soon.told == []
    runtime.advance(1)
    assert (soon.told, later.told) == (["expire"], [])
    runtime.advance(4929)
    assert later.told == []
    runtime.advance(1)
    assert later.told == ["expire"]


def test_no_timer_runs_while_nobody_waits(purgatory: Purgatory[str], runtime: SimulatedRuntime) -> None:
    ready: set[str] = set()
    purgatory.try_complete_else_watch(Wish({"a"}, ready), ["a"], 500)
    assert runtime.timers == 1
    ready.add("a")
    purgatory.check("a")
    runtime.advance(1000)
    assert runtime.timers == 0


def test_a_cancelled_wait_is_never_told(purgatory: Purgatory[str], runtime: SimulatedRuntime) -> None:
    ready: set[str] = set()
    wish = Wish({"a"}, ready)
    purgatory.try_complete_else_watch(wish, ["a"], 100)
    purgatory.cancel(wish)
    ready.add("a")
    purgatory.check("a")
    runtime.advance(200)
    assert (wish.told, purgatory.delayed, purgatory.size) == ([], 0, 0)


def test_completed_waits_leave_the_lists_of_their_other_keys(purgatory: Purgatory[str]) -> None:
    ready = {"a"}
    for _ in range(50):
        wish = Wish({"a", "b", "c"}, set())
        purgatory.try_complete_else_watch(wish, ["a", "b", "c"], 100)
        wish.ready = ready
        purgatory.check("a")
        assert purgatory.size <= 10 + 2
    idle = Wish({"b"}, set())
    purgatory.try_complete_else_watch(idle, ["b"], 100)
    purgatory.check("b")
    purgatory.check("c")
    assert purgatory.size == 1


def test_one_broken_answer_does_not_keep_the_others_waiting(
    purgatory: Purgatory[str], runtime: SimulatedRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("no")

    ready: set[str] = set()
    broken, good = Wish({"a"}, ready, fail), Wish({"a"}, ready)
    for wish in (broken, good):
        purgatory.try_complete_else_watch(wish, ["a"], 100)
    ready.add("a")
    assert purgatory.check("a") == 2
    assert good.told == ["complete"]
    assert "could not be answered" in caplog.text


def test_an_answer_may_begin_a_new_wait_for_the_same_key(purgatory: Purgatory[str]) -> None:
    ready: set[str] = set()
    second = Wish({"a"}, set())

    def again() -> None:
        purgatory.try_complete_else_watch(second, ["a"], 100)

    still = Wish({"a"}, set())
    purgatory.try_complete_else_watch(still, ["a"], 100)
    purgatory.try_complete_else_watch(Wish({"a"}, ready, again), ["a"], 100)
    ready.add("a")
    assert purgatory.check("a") == 1
    second.ready, still.ready = {"a"}, {"a"}
    assert purgatory.check("a") == 2
    assert (second.told, still.told) == (["complete"], ["complete"])


_KEYS = st.sampled_from("abc")
_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sets(_KEYS, min_size=1), st.integers(0, 300)),
        st.tuples(st.just("ready"), _KEYS, st.just(0)),
        st.tuples(st.just("unready"), _KEYS, st.just(0)),
        st.tuples(st.just("check"), _KEYS, st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("advance"), st.integers(0, 200), st.just(0)),
    ),
    max_size=50,
)


@settings(max_examples=150)
@given(_OPERATIONS)
def test_every_wait_is_told_once_at_the_moment_a_simple_model_says(
    operations: list[tuple[str, object, int]],
) -> None:
    runtime = SimulatedRuntime()
    purgatory: Purgatory[str] = Purgatory(runtime, purge_interval=3)
    ready: set[str] = set()
    wishes: list[Wish] = []
    waiting: dict[int, int] = {}  # number: deadline
    expected: dict[int, list[str]] = {}
    for operation, value, timeout_ms in operations:
        if operation == "wait":
            assert isinstance(value, set)
            wish = Wish(value, ready)
            number = len(wishes)
            wishes.append(wish)
            expected[number] = ["complete"] if value & ready else []
            if not purgatory.try_complete_else_watch(wish, value, timeout_ms):
                waiting[number] = runtime.monotonic_ms() + timeout_ms
        elif operation == "ready":
            ready.add(str(value))
        elif operation == "unready":
            ready.discard(str(value))
        elif operation == "check":
            for number in [n for n in waiting if value in wishes[n].keys and wishes[n].keys & ready]:
                expected[number] = ["complete"]
                del waiting[number]
            purgatory.check(str(value))
        elif operation == "cancel" and isinstance(value, int) and value < len(wishes):
            waiting.pop(value, None)
            purgatory.cancel(wishes[value])
        elif operation == "advance" and isinstance(value, int):
            end_ms = runtime.monotonic_ms() + value
            for number in [n for n, deadline_ms in waiting.items() if deadline_ms <= end_ms]:
                expected[number] = ["expire"]
                del waiting[number]
            runtime.advance(value)
        assert [wish.told for wish in wishes] == list(expected.values())
        assert purgatory.delayed == len(waiting)


def test_many_that_one_event_wakes_are_answered_in_turns_and_in_order(
    purgatory: Purgatory[str], runtime: SimulatedRuntime
) -> None:
    ready: set[str] = set()
    told: list[int] = []
    for number in range(1000):
        purgatory.watch(Wish({"a"}, ready, lambda number=number: told.append(number)), ["a"], 100)  # type: ignore[misc]
    ready.add("a")
    purgatory.check("a")
    assert 0 < len(told) < 100
    assert purgatory.size == 1000 - len(told)
    runtime.run_pending()
    assert told == list(range(1000))
    assert purgatory.size == purgatory.delayed == 0


def test_many_whose_time_is_over_are_answered_in_turns(
    purgatory: Purgatory[str], runtime: SimulatedRuntime
) -> None:
    wishes = [Wish({"a"}, set()) for _ in range(1000)]
    for wish in wishes:
        purgatory.watch(wish, ["a"], 100)
    runtime.advance(100)
    runtime.run_pending()
    assert [wish.told for wish in wishes] == [["expire"]] * 1000


def test_when_too_many_wait_the_time_of_the_oldest_is_over(runtime: SimulatedRuntime) -> None:
    purgatory: Purgatory[str] = Purgatory(runtime, purge_interval=10, max_weight=3 * (WAITER_WEIGHT + 1))
    wishes = [Wish({"a"}, set()) for _ in range(5)]
    for wish in wishes:
        purgatory.watch(wish, ["a"], 1000)
    runtime.run_pending()
    assert [wish.told for wish in wishes] == [["expire"], ["expire"], [], [], []]
    assert purgatory.delayed == 3


def test_what_has_ended_makes_room_for_others(runtime: SimulatedRuntime) -> None:
    purgatory: Purgatory[str] = Purgatory(runtime, purge_interval=10, max_weight=2 * (WAITER_WEIGHT + 1))
    ready: set[str] = set()
    for _ in range(5):
        wishes = [Wish({"a"}, ready), Wish({"b"}, ready)]
        purgatory.watch(wishes[0], ["a"], 1000)
        purgatory.watch(wishes[1], ["b"], 1000)
        ready.add("a")
        purgatory.check("a")
        purgatory.cancel(wishes[1])
        ready.clear()
        runtime.run_pending()
        assert [wish.told for wish in wishes] == [["complete"], []]


def test_many_whose_time_is_over_at_once_are_told_in_turns(
    purgatory: Purgatory[str], runtime: SimulatedRuntime
) -> None:
    wishes = [Wish({"a"}, set()) for _ in range(10_000)]
    for wish in wishes:
        purgatory.watch(wish, ["a"], 5000)
    runtime.advance(5000)
    assert all(wish.told == ["expire"] for wish in wishes)
    assert purgatory.delayed == 0
