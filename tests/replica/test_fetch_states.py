"""The states of a fetch: every transition by name, and by the fetches that make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cluster.image import PartitionInfo
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica import fetches
from ottla.replica.fetch_states import TABLE, FetchEvent, FetchState
from ottla.replica.results import FetchEntry
from ottla.states import IllegalEventError, next_state
from ottla.storage.fs import RealFileSystem
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.slow_disk import SlowFileSystem
from tests.replica.world import T0, World, leading

LEGAL = """
    READING LEAVE AWAY, READING WAIT WAITING, READING ANSWER ANSWERED,
    AWAY COME_BACK RESUMED, AWAY CANCEL CANCELLED,
    RESUMED LEAVE AWAY, RESUMED WAIT WAITING, RESUMED ANSWER ANSWERED,
    WAITING WAKE READING_AGAIN, WAITING ANSWER ANSWERED, WAITING CANCEL CANCELLED,
    READING_AGAIN LEAVE AWAY_AGAIN, READING_AGAIN ANSWER ANSWERED,
    AWAY_AGAIN COME_BACK READING_AGAIN, AWAY_AGAIN CANCEL CANCELLED,
    ANSWERED CANCEL ANSWERED,
    CANCELLED COME_BACK CANCELLED, CANCELLED CANCEL CANCELLED
"""


def legal() -> dict[tuple[FetchState, FetchEvent], FetchState]:
    steps = [step.split() for step in LEGAL.split(",")]
    return {(FetchState[old], FetchEvent[event]): FetchState[new] for old, event, new in steps}


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.parametrize("event", FetchEvent)
def test_each_event_leads_where_it_should_or_is_refused(state: FetchState, event: FetchEvent) -> None:
    expected = legal().get((state, event))
    if expected is None:
        with pytest.raises(IllegalEventError, match=f"{event.name} cannot happen in the state {state.name}"):
            next_state(TABLE, state, event)
    else:
        assert next_state(TABLE, state, event) is expected


def test_every_state_can_be_reached_and_every_one_leads_to_an_end() -> None:
    ends = {FetchState.ANSWERED, FetchState.CANCELLED}
    reached = {FetchState.READING} | {new for steps in TABLE.values() for new in steps.values()}
    assert reached == set(FetchState)
    for state in FetchState:
        seen, todo = {state}, [state]
        while todo:
            new = set(TABLE[todo.pop()].values()) - seen
            seen |= new
            todo += new
        assert seen & ends


# -- real fetches


@pytest.fixture
def runtime() -> SimulatedRuntime:
    return SimulatedRuntime(queued=True)


@pytest.fixture
def world(tmp_path: Path, runtime: SimulatedRuntime) -> World:
    world = World(str(tmp_path / "data"), runtime=runtime)
    world.make_topic("t", leading())
    runtime.run_pending()
    return world


ENTRY = FetchEntry(T0, None, 0, 1 << 20)


def test_a_fetch_that_comes_back_to_nobody_reads_no_more(world: World, runtime: SimulatedRuntime) -> None:
    world.append()
    runtime.run_pending()
    requests = world.metrics.topic("t").fetch_requests
    told = world.fetch(ENTRY, ENTRY, ENTRY, copied_bytes=100)  # by the lane, one after the other
    world.replicas.cancel_fetch(told.wait)
    world.replicas.cancel_fetch(told.wait)
    runtime.run_pending()
    assert told.is_waiting
    assert world.metrics.topic("t").fetch_requests == requests + 1
    world.logs.abandon()


def test_what_came_while_a_pass_was_away_is_not_missed(world: World, runtime: SimulatedRuntime) -> None:
    """The first of two partitions grows while the second one is read by its lane: there is nothing to wait for."""
    other = TopicPartition("t", 1)
    world.make_topic("t", leading(), leading())
    runtime.run_pending()
    partition = world.replicas.partition(other)
    assert partition is not None
    partition.lend()
    told = world.fetch(ENTRY, FetchEntry(other, None, 0, 1 << 20, last_fetched_epoch=0), max_wait_ms=500)
    world.append()
    runtime.run_pending()
    assert told.results is not None
    assert told.results[0].size_bytes
    world.logs.abandon()


def test_a_fetch_of_very_many_partitions_waits_and_is_woken(tmp_path: Path) -> None:
    count = 2 * fetches._SLICE + 1
    runtime = SimulatedRuntime(queued=True)
    world = World(str(tmp_path / "data"), runtime=runtime)
    world.make_topic("t", *[leading()] * count)
    runtime.run_pending()
    entries = [FetchEntry(TopicPartition("t", number), None, 0, 1 << 20) for number in range(count)]
    told = world.fetch(*entries, max_wait_ms=500)
    runtime.run_pending()
    assert told.is_waiting
    world.append(entries[-1].partition)
    runtime.run_pending()
    assert told.results is not None
    assert [result.size_bytes > 0 for result in told.results] == [False] * (count - 1) + [True]
    gone = world.fetch(*entries, max_wait_ms=500)
    world.replicas.cancel_fetch(gone.wait)
    runtime.run_pending()
    runtime.advance(500)
    assert gone.is_waiting
    world.logs.abandon()


def test_a_fetch_that_is_woken_by_a_role_it_lost_tells_so(world: World, runtime: SimulatedRuntime) -> None:
    told = world.fetch(ENTRY, max_wait_ms=500)
    world.make_topic("t", PartitionInfo(2, (1, 2), (1, 2), 1))
    runtime.run_pending()
    assert told.only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.logs.abandon()


def test_cold_pages_of_a_second_pass_are_read_elsewhere_too(tmp_path: Path) -> None:
    slow = SlowFileSystem(RealFileSystem())
    runtime = SimulatedRuntime(queued=True)
    world = World(str(tmp_path / "data"), fs=slow, runtime=runtime)
    world.make_topic("t", leading())
    runtime.run_pending()
    told = world.fetch(ENTRY, max_wait_ms=500)
    slow.cool_down(world.log().segments.active.path(".log"))
    world.append()
    assert told.is_waiting
    runtime.run_pending()
    assert (told.only.size_bytes, len(slow.warmed)) == (world.log().size_bytes, 1)
    world.logs.abandon()
