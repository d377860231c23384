"""Consumer groups of the newer protocol: joining, leaving, moving partitions from one member to another."""

from __future__ import annotations

from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.api.world import World
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import GROUP, REBALANCE_MS, commit, committed
from tests.coordinator.modern import SESSION_MS, Modern, described, numbers, settle, state_of

UNKNOWN_MEMBER, NOT_FOUND, FENCED, UNRELEASED = 25, 69, 110, 111
MAX_SIZE, STALE, FENCED_INSTANCE = 81, 113, 82


def test_the_first_member_gets_all_partitions(world: World) -> None:
    member = Modern(world)
    assert member.join() == 0
    assert member.has == {"t": {0, 1, 2}}
    assert member.epoch == 1
    group = described(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)


def test_a_member_that_leaves_is_gone(world: World) -> None:
    member = Modern(world)
    member.join()
    assert member.leave() == 0
    assert described(world).group_state == "Empty"
    assert described(world).members == []


def test_no_partition_is_given_away_before_its_owner_has_let_go_of_it(world: World) -> None:
    first, second = Modern(world), Modern(world)
    first.join()
    second.join()
    assert second.has == {}
    assert described(world).group_state == "Reconciling"
    first.beat(topic_partitions=first.owned())
    assert len(first.has["t"]) == 2
    second.beat()
    assert second.has == {}, "the first has not said that it has let go"
    first.confirm()
    second.beat()
    assert numbers(first, second) == [0, 1, 2]
    settle(first, second)
    assert described(world).group_state == "Stable"
    assert first.epoch == second.epoch == 2


def test_a_member_keeps_its_epoch_until_it_has_let_go(world: World) -> None:
    first, second = Modern(world), Modern(world)
    first.join()
    second.join()
    first.beat()
    assert first.epoch == 1
    for _ in range(3):
        first.beat()
        assert first.epoch == 1
    first.confirm()
    assert first.epoch == 2


def test_members_come_and_go_and_every_partition_has_one_of_them(world: World) -> None:
    members = [Modern(world) for _ in range(3)]
    for count, member in enumerate(members, 1):
        member.join()
        settle(*members[:count])
        assert numbers(*members[:count]) == [0, 1, 2]
    members[0].leave()
    settle(*members[1:])
    assert numbers(*members[1:]) == [0, 1, 2]


# -- those who are not heard of


def test_a_member_that_is_silent_for_a_session_is_out(world: World) -> None:
    first, second = Modern(world), Modern(world)
    first.join()
    second.join()
    settle(first, second)
    world.runtime.advance(SESSION_MS - 1)
    assert second.beat() == 0
    world.runtime.advance(1)
    assert first.beat() == UNKNOWN_MEMBER
    settle(second)
    assert numbers(second) == [0, 1, 2]


def test_a_member_that_does_not_let_go_in_time_is_out(make_world: MakeWorld) -> None:
    world = make_world()
    first, second = Modern(world, rebalance_ms=5_000), Modern(world)
    first.join()
    second.join()
    first.beat()
    for _ in range(4):
        world.runtime.advance(1_000)
        assert first.beat() == 0
        assert second.beat() == 0
    world.runtime.advance(1_000)
    assert first.beat() == UNKNOWN_MEMBER
    settle(second)
    assert numbers(second) == [0, 1, 2]


def test_a_member_that_let_go_in_time_stays(world: World) -> None:
    first, second = Modern(world, rebalance_ms=5_000), Modern(world)
    first.join()
    second.join()
    first.beat()
    first.confirm()
    world.runtime.advance(10_000)
    assert first.beat() == 0


def test_sessions_begin_anew_with_another_broker(world: World) -> None:
    member = Modern(world)
    member.join()
    world.runtime.advance(SESSION_MS - 1)
    world.restart()
    world.runtime.advance(SESSION_MS - 1)
    assert member.beat() == 0
    world.runtime.advance(SESSION_MS)
    assert member.beat() == UNKNOWN_MEMBER


def test_a_member_that_was_to_let_go_is_waited_for_by_another_broker_too(world: World) -> None:
    first, second = Modern(world, rebalance_ms=5_000), Modern(world)
    first.join()
    second.join()
    first.beat()
    world.restart()
    world.runtime.advance(5_000)
    assert first.beat() == UNKNOWN_MEMBER


# -- epochs


def test_a_member_of_another_epoch_has_to_join_again(world: World) -> None:
    member = Modern(world)
    member.join()
    assert member.send(member_epoch=2).error_code == FENCED
    assert member.join() == 0
    assert member.has == {"t": {0, 1, 2}}


def test_a_member_that_did_not_hear_of_its_epoch_may_ask_again(world: World) -> None:
    first, second = Modern(world), Modern(world)
    first.join()
    second.join()
    first.beat()
    assert first.send(topic_partitions=first.owned()).member_epoch == 2
    # It still thinks that it is in the first epoch.
    assert first.send(member_epoch=1).error_code == FENCED, "without what it has nobody can tell"
    answer = first.send(member_epoch=1, topic_partitions=first.owned())
    assert (answer.error_code, answer.member_epoch) == (0, 2)


def test_who_is_not_a_member_is_told_so(world: World) -> None:
    assert Modern(world, member_id="x").beat(member_epoch=1) == NOT_FOUND
    Modern(world).join()
    assert Modern(world, member_id="x").beat(member_epoch=1) == UNKNOWN_MEMBER
    assert Modern(world, member_id="x").leave() == UNKNOWN_MEMBER


def test_a_group_has_no_more_members_than_allowed(make_world: MakeWorld) -> None:
    world = make_world(group_consumer_max_size="1")
    first, second = Modern(world), Modern(world)
    first.join()
    assert second.join() == MAX_SIZE
    assert first.join() == 0
    first.leave()
    assert second.join() == 0


# -- static members


def test_a_static_member_comes_back_to_what_it_had(world: World) -> None:
    first, second = Modern(world, instance="a"), Modern(world, instance="b")
    first.join()
    second.join()
    settle(first, second)
    before, epoch = dict(first.has), state_of(world).epoch
    assert first.leave(-2) == 0
    assert second.beat() == 0
    again = Modern(world, instance="a")
    assert again.join() == 0
    assert again.has == before
    assert state_of(world).epoch == epoch
    assert first.beat() == FENCED_INSTANCE


def test_an_instance_that_is_in_use_is_not_given_away(world: World) -> None:
    first, second = Modern(world, instance="a"), Modern(world, instance="a")
    first.join()
    assert second.join() == UNRELEASED
    assert first.beat() == 0


def test_a_static_member_that_does_not_come_back_is_out(world: World) -> None:
    first, second = Modern(world, instance="a"), Modern(world)
    first.join()
    second.join()
    settle(first, second)
    first.leave(-2)
    world.runtime.advance(SESSION_MS // 2)
    second.confirm()
    assert len(numbers(second)) < 3
    world.runtime.advance(SESSION_MS // 2 + 1)
    settle(second)
    assert numbers(second) == [0, 1, 2]


# -- offsets and whole groups


def test_commits_are_those_of_the_members_epoch(world: World) -> None:
    member = Modern(world)
    member.join()
    assert member.commit(5) == 0
    member.epoch = 7
    assert member.commit(6) == STALE
    assert committed(world, GROUP, 0)[0].committed_offset == 5


def test_an_administrator_commits_when_nobody_is_there(world: World) -> None:
    member = Modern(world)
    member.join()
    assert commit(world, GROUP, 5) == UNKNOWN_MEMBER
    member.leave()
    assert commit(world, GROUP, 5) == 0


def test_an_empty_group_is_deleted_with_its_offsets(world: World) -> None:
    member = Modern(world)
    member.join()
    member.commit(5)
    (refused,) = world.ask(DeleteGroupsRequest(groups_names=[GROUP])).results
    assert refused.error_code == 68
    member.leave()
    (deleted,) = world.ask(DeleteGroupsRequest(groups_names=[GROUP])).results
    assert deleted.error_code == 0
    world.restart()
    assert described(world).error_code == NOT_FOUND
    assert committed(world, GROUP) == []


def test_an_empty_group_without_offsets_goes_by_itself(world: World) -> None:
    member = Modern(world)
    member.join()
    member.leave()
    world.runtime.advance(10 * REBALANCE_MS)
    world.runtime.run_pending()
    assert described(world).error_code == NOT_FOUND


def test_the_first_version_gives_a_member_its_id(world: World) -> None:
    member = Modern(world, member_id="")
    assert member.join(version=0) == 0
    assert len(member.member_id) == 22
    assert member.beat(version=0) == 0
