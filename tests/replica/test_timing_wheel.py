"""The timing wheel against a plain list of deadlines."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.replica.timing_wheel import Entry, TimingWheel

# Steps of every size: within a slot, over the edges of levels, and far beyond.
_STEPS = st.one_of(
    st.integers(0, 3),
    st.integers(50, 200),
    st.integers(4000, 5000),
    st.sampled_from([63, 64, 65, 4095, 4096, 4097, 262_144, 10**9]),
)
_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _STEPS),
        st.tuples(st.just("add"), st.just(-5)),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("advance"), _STEPS),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(st.integers(0, 2**41), _OPERATIONS)
def test_items_expire_at_their_deadlines_whatever_came_before(
    start_ms: int, operations: list[tuple[str, int]]
) -> None:
    wheel: TimingWheel[int] = TimingWheel(start_ms)
    model: dict[int, int] = {}
    entries: dict[int, Entry[int]] = {}
    now_ms = start_ms
    for number, (operation, value) in enumerate(operations):
        if operation == "add":
            entries[number] = wheel.add(now_ms + value, number)
            model[number] = now_ms + value
        elif operation == "remove":
            assert not entries.get(value) or wheel.remove(entries[value]) == (value in model)
            model.pop(value, None)
        else:
            now_ms += value
            due = {item for item, deadline_ms in model.items() if deadline_ms <= now_ms}
            assert set(wheel.advance(now_ms)) == due
            for item in due:
                del model[item]
        assert len(wheel) == len(model)
        next_ms = wheel.next_ms()
        assert (next_ms is None) == (not model)
        if next_ms is not None:
            assert next_ms <= max(now_ms, min(model.values()))


@settings(max_examples=100)
@given(st.lists(st.integers(0, 10_000), max_size=50))
def test_called_when_it_asks_for_it_every_item_expires_exactly_at_its_deadline(delays: list[int]) -> None:
    wheel: TimingWheel[int] = TimingWheel(7)
    for delay in delays:
        wheel.add(7 + delay, 7 + delay)
    turns = 0
    expired: list[int] = []
    while (next_ms := wheel.next_ms()) is not None:
        due = wheel.advance(next_ms)
        assert all(deadline_ms == next_ms for deadline_ms in due)
        expired += due
        turns += 1
    assert expired == sorted(7 + delay for delay in delays)
    assert turns <= 3 * len(delays)


def test_the_farthest_deadline_is_kept() -> None:
    wheel: TimingWheel[str] = TimingWheel()
    wheel.add(2**63 - 1, "far")
    assert wheel.advance(2**63 - 2) == []
    assert wheel.advance(2**63 - 1) == ["far"]


@settings(max_examples=100)
@given(st.lists(st.integers(0, 10_000), max_size=50), st.integers(1, 7), st.lists(st.integers(0, 49)))
def test_moved_a_few_at_a_time_every_item_that_is_left_expires_once(
    delays: list[int], limit: int, removals: list[int]
) -> None:
    wheel: TimingWheel[int] = TimingWheel(7)
    entries = [wheel.add(7 + delay, number) for number, delay in enumerate(delays)]
    gone: set[int] = set()
    expired: list[int] = []
    while (next_ms := wheel.next_ms()) is not None:
        due = wheel.advance(next_ms, limit)
        assert len(due) <= limit
        assert all(7 + delays[item] <= next_ms for item in due)
        expired += due
        if removals and (removed := removals.pop()) < len(delays):
            is_there = removed not in gone and removed not in expired
            assert wheel.remove(entries[removed]) == is_there
            gone |= {removed} if is_there else set()
        assert len(wheel) == len(delays) - len(gone) - len(expired)
    assert sorted(expired) == sorted(set(range(len(delays))) - gone)
