"""What only groups of the newer protocol have, with librdkafka; test_groups.py has what all groups have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient

from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.testing.embedded import EmbeddedBroker
from tests.clients.client import TIMEOUT_S
from tests.clients.group_members import ConfluentMember, Member, NewerMember
from tests.clients.sharing import ALL, GROUP, OFTEN, TOPIC, leave, shared, until

Join = Callable[..., ConfluentMember]


@pytest.fixture
def ottla_broker_properties() -> dict[str, str]:
    return OFTEN


@pytest.fixture
def join(joined: list[Member], ottla_broker: EmbeddedBroker) -> Join:
    def join(kind: type[ConfluentMember] = NewerMember, topic: str = TOPIC) -> ConfluentMember:
        member = kind(ottla_broker.bootstrap, GROUP, topic)
        joined.append(member)
        return member

    return join


def group_of(broker: EmbeddedBroker) -> ConsumerGroup:
    groups = broker.broker.services.groups
    (found,) = [state.consumer_groups[GROUP] for state in groups.states() if GROUP in state.consumer_groups]
    return found


def test_members_keep_what_they_need_not_give_away(join: Join) -> None:
    first = join()
    until(lambda: first.assignment() == ALL, first)
    second = join()
    until(shared(first, second), first, second)
    assert [part for part in first.revoked if part] == [second.assignment()]
    assert len(second.assignment()) == 2


def test_members_by_a_pattern_get_topics_that_come_later(join: Join, ottla_broker: EmbeddedBroker) -> None:
    member = join(topic="^ord.*")
    until(lambda: member.assignment() == ALL, member)
    # Patterns are looked up again after ten seconds at the earliest.
    ottla_broker.clock.advance(11_000)
    ottla_broker.create_topic("ordinary")
    until(lambda: member.assignment() == {*ALL, ("ordinary", 0)}, member)


def test_a_group_moves_from_the_classic_protocol_to_the_newer_one_and_back(
    join: Join, joined: list[Member], ottla_broker: EmbeddedBroker
) -> None:
    first = join(ConfluentMember)
    until(lambda: first.assignment() == ALL, first)
    new = join()
    until(shared(first, new), first, new)
    assert {member.is_classic for member in group_of(ottla_broker).members.values()} == {True, False}
    leave(new, joined)
    until(lambda: first.assignment() == ALL, first)
    (state,) = [s for s in ottla_broker.broker.services.groups.states() if GROUP in s.groups]
    assert state.groups[GROUP].phase.value == "Stable"


def test_administrators_see_the_group(join: Join, ottla_broker: EmbeddedBroker) -> None:
    member = join()
    until(lambda: member.assignment() == ALL, member)
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap, "log_level": 0})
    (listed,) = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert (listed.group_id, listed.type.name, listed.state.name) == (GROUP, "CONSUMER", "STABLE")
    described = admin.describe_consumer_groups([GROUP])[GROUP].result(TIMEOUT_S)
    assert described.type.name == "CONSUMER"
    (found,) = described.members
    assert {(at.topic, at.partition) for at in found.assignment.topic_partitions} == ALL
