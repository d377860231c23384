"""How many producers partitions remember: all together no more than they may, and the silent ones go first."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.producers.quota import ProducerQuota
from ottla.storage.producers.state import ProducerState

DAY_MS = 86_400_000


def write(state: ProducerState, producer_id: int, offset: int = 0, *, transactional: bool = False) -> None:
    state.append_batch(producer_id, 0, 0, 1, offset, offset, offset, transactional)


def logs_of(states: list[ProducerState]) -> dict[int, SimpleNamespace]:
    return {number: SimpleNamespace(producers=state) for number, state in enumerate(states)}


def partitions(limit: int, count: int) -> list[ProducerState]:
    states = [ProducerState(DAY_MS) for _ in range(count)]
    quota = ProducerQuota(limit, logs_of(states))
    for state in states:
        state.quota = quota
    return states


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(1, 300))
def test_the_level_is_as_high_as_the_limit_allows(sizes: list[int], limit: int) -> None:
    states = [ProducerState(DAY_MS) for _ in sizes]
    for state, size in zip(states, sizes, strict=True):
        for producer_id in range(size):
            write(state, producer_id)
    quota = ProducerQuota(limit, logs_of(states))
    for _ in range(limit):
        quota.allows(0)
    level = quota.level
    kept = sum(min(size, level) for size in sizes)
    assert kept <= max(limit, len(sizes))  # one is left to each in any case
    if sum(sizes) > limit > len(sizes):
        assert sum(min(size, level + 1) for size in sizes) > limit


def test_all_partitions_together_remember_no_more_producers_than_they_may() -> None:
    states = partitions(limit=1_000, count=10)
    for producer_id in range(20_000):
        write(states[producer_id % 10], producer_id, producer_id)
    assert 900 <= sum(len(state.producers) for state in states) <= 1_020
    for number, state in enumerate(states):
        assert 19_990 + number in state.producers


def test_partitions_with_few_producers_keep_them_while_another_is_flooded() -> None:
    quiet, flooded = partitions(limit=1_000, count=2)
    for producer_id in range(100):
        write(quiet, producer_id)
    for producer_id in range(10_000):
        write(flooded, 1_000 + producer_id, producer_id)
    assert sorted(quiet.producers) == list(range(100))
    assert len(flooded.producers) <= 920


def test_a_producer_that_goes_on_writing_is_not_forgotten() -> None:
    (state,) = partitions(limit=1_000, count=1)
    write(state, 7)
    for producer_id in range(10_000):
        write(state, 100 + producer_id, producer_id)
        if not producer_id % (125):
            state.append_batch(7, 0, 0, 1, producer_id, producer_id, 0, transactional=False)
            assert len(state.producers[7].batches) > 1 or producer_id == 0
    assert 100 not in state.producers


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    (state,) = partitions(limit=100, count=1)
    write(state, 7, 5, transactional=True)
    for producer_id in range(1_000):
        write(state, 100 + producer_id, 6 + producer_id)
    assert state.producers[7].txn_first_offset == 5
    assert state.first_unstable_offset == 5
    assert len(state.producers) <= 101


def test_a_producer_that_was_forgotten_goes_on_as_one_that_has_expired() -> None:
    (state,) = partitions(limit=10, count=1)
    write(state, 7)
    for producer_id in range(100, 120):
        write(state, producer_id)
    assert 7 not in state.producers
    state.check_append(7, 0, 5, transactional=False)  # whatever its sequence is
