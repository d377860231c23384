"""What members of consumer groups want, by name or by pattern, and what happens when topics come, grow and go."""

from __future__ import annotations

import pytest

from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.api.world import World
from tests.coordinator.grouping import GROUP, committed
from tests.coordinator.modern import Modern, described, state_of

NOT_FOUND, WRONG_PATTERN = 69, 128


def look_up(world: World) -> None:
    """Give the coordinator the time to look up what patterns stand for."""
    world.runtime.advance(1)
    world.runtime.run_pending()


def test_a_member_that_wants_other_topics_gives_up_those_it_does_not_want(world: World) -> None:
    world.make_topic("u", 2)
    member = Modern(world, topics=("t", "u"))
    member.join()
    assert member.has == {"t": {0, 1, 2}, "u": {0, 1}}
    member.subscribe("u")
    assert (member.has, member.epoch) == ({"u": {0, 1}}, 1)
    member.confirm()
    assert member.epoch == 2
    member.subscribe()
    member.confirm()
    assert member.has == {}


def test_more_partitions_are_given_out_with_the_next_heartbeat(world: World) -> None:
    member = Modern(world)
    member.join()
    more = CreatePartitionsTopic(name="t", count=5)
    world.ask(CreatePartitionsRequest(topics=[more]))
    member.beat()
    assert (member.has, member.epoch) == ({"t": set(range(5))}, 2)


def test_a_topic_that_is_made_later_is_given_out_then(world: World) -> None:
    member = Modern(world, topics=("t", "later"))
    member.join()
    assert member.has == {"t": {0, 1, 2}}
    world.make_topic("other")
    member.beat()
    assert member.epoch == 1, "a topic that nobody wants"
    world.make_topic("later")
    member.beat()
    assert (member.has, member.epoch) == ({"t": {0, 1, 2}, "later": {0}}, 2)


def test_a_topic_that_is_deleted_is_taken_away_and_its_offsets_with_it(world: World) -> None:
    member = Modern(world)
    member.join()
    assert member.commit(5) == 0
    world.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    member.beat(topic_partitions=[])
    assert (member.has, member.epoch) == ({}, 2)
    assert committed(world, GROUP) == []


def test_the_assignor_that_most_members_ask_for_is_taken(world: World) -> None:
    members = [Modern(world, assignor=name) for name in ("range", "range", "uniform")]
    for member in members:
        member.join()
    assert described(world).assignor_name == "range"
    members[0].leave()
    members[1].leave()
    assert described(world).assignor_name == "uniform"


# -- patterns


def test_a_pattern_stands_for_the_topics_it_matches(world: World) -> None:
    world.make_topic("tt", 1)
    member = Modern(world, topics=None, pattern="t+")
    assert member.join() == 0
    assert member.has == {}
    look_up(world)
    member.beat()
    assert member.has == {"t": {0, 1, 2}, "tt": {0}}
    assert member.epoch == 2


def test_new_topics_of_a_pattern_are_found_after_a_while(world: World) -> None:
    member = Modern(world, topics=None, pattern="t.*")
    member.join()
    look_up(world)
    world.make_topic("tt", 1)
    member.beat()
    look_up(world)
    member.beat()
    assert member.has == {"t": {0, 1, 2}}, "not more often than every ten seconds"
    world.runtime.advance(10_001)
    member.beat()
    look_up(world)
    member.beat()
    assert member.has == {"t": {0, 1, 2}, "tt": {0}}


def test_a_pattern_that_is_none_is_refused_and_changes_nothing(world: World) -> None:
    member = Modern(world, topics=None, pattern="t(")
    assert member.join() == WRONG_PATTERN
    assert described(world).error_code == NOT_FOUND


def test_a_pattern_that_nobody_has_any_more_is_forgotten(world: World) -> None:
    member = Modern(world, topics=None, pattern="t.*")
    member.join()
    look_up(world)
    member.beat()
    assert set(state_of(world).resolved) == {"t.*"}
    member.beat(subscribed_topic_regex="", subscribed_topic_names=["t"])
    assert state_of(world).resolved == {}
    assert member.has == {"t": {0, 1, 2}}


def test_many_topics_are_searched_in_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.consumer.pattern_resolver._PIECE_STEPS", 3)
    for number in range(5):
        world.make_topic(f"many-{number}")
    member = Modern(world, topics=None, pattern="many-[0-3]")
    member.join()
    look_up(world)
    member.beat()
    assert set(member.has) == {f"many-{number}" for number in range(4)}
