"""What anybody can make the group coordinator remember has a limit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.offsets import room
from ottla.coordinator.offsets.committed import TEXT_BYTES, CommittedOffsets, Total
from ottla.internal_topics.commit_kernel import CommittedOffset
from ottla.internal_topics.group_records import OffsetCommit, OffsetCommits
from ottla.protocol.errors import ErrorCode
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import Consumer, commit, committed
from tests.coordinator.modern import Modern

FULL = ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_broker_takes_no_more_groups_than_it_may(make_world: MakeWorld) -> None:
    world = make_world(ottla_max_groups="3")
    first = Consumer(world, "joined")
    assert first.send_join().answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert commit(world, "committed", 1) == 0
    second = Modern(world, "modern")
    assert second.join() == 0
    assert Consumer(world, "more").send_join().answer.error_code == FULL
    assert commit(world, "more", 1) == FULL
    assert Modern(world, "more").join() == FULL
    # Those that are there go on.
    assert commit(world, "committed", 2) == 0
    assert second.beat() == 0
    assert len(world.services.groups.states()) == 3
    assert sum(len(state.all_groups()) for state in world.services.groups.states()) == 3


def test_a_broker_keeps_no_more_offsets_than_it_may(make_world: MakeWorld) -> None:
    world = make_world(ottla_max_committed_offsets="2")
    assert commit(world, "a", 1, 0) == 0
    assert commit(world, "b", 1, 1) == 0
    assert commit(world, "a", 1, 2) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert commit(world, "a", 7, 0) == 0  # it is there already
    assert [entry.committed_offset for entry in committed(world, "a", 0)] == [7]
    world.restart()
    assert commit(world, "a", 1, 2) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE


def test_long_texts_count_as_offsets(make_world: MakeWorld) -> None:
    world = make_world(ottla_max_committed_offsets="3")
    assert commit(world, "a", 1, 0, metadata="x" * 2 * TEXT_BYTES) == 0
    assert commit(world, "b", 1, 1) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert commit(world, "a", 1, 0) == 0
    assert commit(world, "b", 1, 1) == 0


groups, topics = st.sampled_from(["a", "b"]), st.sampled_from(["t", "u"])
texts = st.sampled_from(["", "short", "x" * TEXT_BYTES, "x" * 3 * TEXT_BYTES])
entries = st.dictionaries(st.integers(0, 3), texts, min_size=1, max_size=3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("many"), groups, topics, entries, st.sampled_from([-1, -1, 7, 8])),
        st.tuples(st.just("remove"), groups, topics, st.integers(0, 3)),
        st.tuples(st.just("end"), st.sampled_from([7, 8]), st.booleans()),
    ),
    max_size=20,
)


@given(steps)
def test_the_weight_of_offsets_is_that_of_what_is_kept(history: list[tuple[Any, ...]]) -> None:
    total = Total()
    offsets = CommittedOffsets(total)
    for at, (kind, *step) in enumerate(history):
        if kind == "many":
            group, topic, wanted, producer_id = step
            given_entries = [(number, at, 0, text) for number, text in wanted.items()]
            offsets.replay_many(
                OffsetCommits(group, topic, None, given_entries, at, -1), at * 10, producer_id
            )
        elif kind == "remove":
            group, topic, number = step
            offsets.replay(OffsetCommit(group, topic, number, None), at * 10, -1)
        else:
            offsets.end_txn(step[0], committed=step[1])
    kept: list[CommittedOffset] = [stored for group in ("a", "b") for stored in offsets.of(group).values()]
    kept += [stored for pending in offsets.pending().values() for stored in pending.values()]
    assert total.weight == sum(1 + len(stored.metadata) // TEXT_BYTES for stored in kept)
    offsets.unload()
    assert total.weight == 0


def test_what_members_of_all_groups_say_has_a_limit(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", 3_000)
    monkeypatch.setattr(room, "MEMBER_BYTES", 0)
    world = make_world()
    large = bytes(1_000)
    members = [Consumer(world, f"g{number}", metadata=large, instance="i") for number in range(3)]
    for one in members[:2]:
        assert one.send_join().is_waiting
    assert Modern(world, "modern", topics=tuple(f"topic-{number}" for number in range(20))).join() == FULL
    assert members[2].send_join().is_waiting
    assert Consumer(world, "late", metadata=b"x", instance="i").send_join().answer.error_code == FULL
    for one in members:
        one.leave()
    world.runtime.advance(2_000)
    assert Modern(world, "modern", topics=tuple(f"topic-{number}" for number in range(20))).join() == 0


def test_what_a_member_of_a_consumer_group_says_has_a_limit(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_MEMBER_BYTES", 600)
    world = make_world()
    member = Modern(world, topics=tuple(f"topic-{number}" for number in range(10)))
    assert member.join() == 0
    assert member.subscribe(*(f"topic-{number}" for number in range(20))) == FULL
    assert member.beat() == 0


def test_members_of_all_groups_have_a_limit_also_if_they_say_nothing(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", 2 * room.MEMBER_BYTES)
    world = make_world()
    members = [Consumer(world, f"g{number}", metadata=b"", instance="i") for number in range(3)]
    assert [one.send_join().is_waiting for one in members] == [True, True, True]
    late = Consumer(world, "late", metadata=b"", instance="i")
    assert late.send_join().answer.error_code == FULL


def test_names_have_a_limit(make_world: MakeWorld) -> None:
    world = make_world()
    name = "x" * (room.MAX_NAME + 1)
    assert commit(world, name, 1) == ErrorCode.INVALID_GROUP_ID
    assert Consumer(world, name).send_join().answer.error_code == ErrorCode.INVALID_GROUP_ID
    assert Consumer(world, instance=name).send_join().answer.error_code == ErrorCode.INVALID_REQUEST
    assert Modern(world, name).join() == ErrorCode.INVALID_GROUP_ID
    assert Modern(world, member_id=name).join() == ErrorCode.INVALID_REQUEST
    assert Modern(world, "g", member_id=name[1:]).join() == 0
