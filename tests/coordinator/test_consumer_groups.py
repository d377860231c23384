"""Consumer groups of the newer protocol: joining, leaving, moving partitions from one member to another."""

from __future__ import annotations

from tests.api.world import World
from tests.coordinator.modern import Modern, described, numbers, settle


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
