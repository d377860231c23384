"""Groups with very many members: what is done in several turns of the loop ends as it would in one."""

from __future__ import annotations

import pytest

from ottla.coordinator.classic.group import QUICKLY_READ, Group
from ottla.coordinator.consumer import target_assignments
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.api.world import World
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import GROUP, Consumer, commit, find, settle, subscription
from tests.coordinator.modern import Modern


def classic_group(world: World) -> Group:
    return next(state.groups[GROUP] for state in world.services.groups.states() if GROUP in state.groups)


def test_every_member_of_a_large_classic_group_hears_of_its_generation_and_its_assignment(
    world: World,
) -> None:
    consumers = [Consumer(world) for _ in range(100)]
    pending = [one.begin_join() for one in consumers]
    world.runtime.advance(3_000)
    world.runtime.advance(3_000)
    answers = [one.take_join(join) for one, join in zip(consumers, pending, strict=True)]
    assert {answer.generation_id for answer in answers} == {1}
    (leader,) = [answer for answer in answers if answer.members]
    assert leader.member_id == leader.leader
    assert [member.member_id for member in leader.members].count(leader.member_id) == 1
    assert {member.member_id for member in leader.members} == {one.member_id for one in consumers}
    syncs = [
        one.send_sync({other.member_id: other.member_id.encode() for other in consumers})
        if one.member_id == leader.leader
        else one.send_sync()
        for one in consumers
    ]
    world.runtime.run_pending()
    assert [sync.answer.assignment for sync in syncs] == [one.member_id.encode() for one in consumers]
    world.runtime.advance(9_000)
    assert {one.heartbeat() for one in consumers[:50]} == {0}  # all of them have a session
    world.runtime.advance(2_000)
    assert len(classic_group(world).members) == 50


def test_what_a_group_wants_is_known_in_the_end_however_much_it_is(world: World) -> None:
    wanted = [f"wanted-{number}" for number in range(QUICKLY_READ)]
    first, second = (
        Consumer(world, metadata=subscription("t", *wanted)),
        Consumer(world, metadata=subscription("u")),
    )
    settle(first, second)
    world.runtime.run_pending()
    assert classic_group(world).topics == frozenset({"t", "u", *wanted})
    world.restart()
    find(world)
    world.runtime.run_pending()
    assert classic_group(world).topics == frozenset({"t", "u", *wanted})


def test_a_consumer_that_names_too_many_topics_may_want_anything(world: World) -> None:
    world.make_topic("other", 1)
    assert commit(world, GROUP, 5, topic="other") == 0
    settle(Consumer(world, metadata=subscription(*(f"wanted-{number}" for number in range(10_001)))))
    world.runtime.run_pending()
    topic = OffsetDeleteRequestTopic(
        name="other", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    answer = world.ask(OffsetDeleteRequest(group_id=GROUP, topics=[topic]))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_large_consumer_group_shares_out_all_partitions_a_little_later(world: World, assignor: str) -> None:
    world.make_topic("many", 40)
    members = [Modern(world, topics=("many",), assignor=assignor) for _ in range(10)]
    assert {one.join() for one in members} == {0}
    late = settle_large(
        world, members, [Modern(world, topics=("many",), assignor=assignor) for _ in range(10)]
    )
    owned = [number for one in [*members, *late] for number in one.has.get("many", ())]
    assert sorted(owned) == list(range(40))
    assert {len(one.has["many"]) for one in [*members, *late]} == {2}


def settle_large(world: World, members: list[Modern], late: list[Modern]) -> list[Modern]:
    """Let more join, as if the group were large by then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_assignments, "LARGE", 0)
        for one in late:
            assert one.join() == 0
            assert one.epoch > 0
        for _ in range(6):
            world.runtime.run_pending()
            for one in [*members, *late]:
                assert one.confirm() == 0
    return late


def test_members_that_leave_a_large_group_leave_their_partitions_to_the_others(world: World) -> None:
    world.make_topic("many", 12)
    members = [Modern(world, topics=("many",)) for _ in range(4)]
    assert members[0].join() == 0
    settle_large(world, members[:1], members[1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_assignments, "LARGE", 0)
        assert members.pop().leave() == 0
        for _ in range(6):
            world.runtime.run_pending()
            assert {one.confirm() for one in members} == {0}
        assert sorted(n for one in members for n in one.has["many"]) == list(range(12))
        for one in members:
            assert one.leave() == 0
        world.runtime.run_pending()
        assert Modern(world, topics=("many",)).join() == 0


def test_ids_that_were_given_out_and_not_used_have_a_limit(make_world: MakeWorld) -> None:
    world = make_world(group_max_size="2")
    codes = [Consumer(world).send_join().answer.error_code for _ in range(3)]
    required = ErrorCode.MEMBER_ID_REQUIRED
    assert codes == [required, required, ErrorCode.GROUP_MAX_SIZE_REACHED]
