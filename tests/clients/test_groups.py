"""Real clients in consumer groups: they share partitions, commit, come back, and keep what they had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.coordinator.groups.state import GroupState
from ottla.names import TopicPartition
from ottla.testing.embedded import EmbeddedBroker
from tests.clients.client import Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.group_members import (
    AioMember,
    Commit,
    ConfluentMember,
    KafkaPythonMember,
    Member,
    NewerMember,
)
from tests.clients.sharing import ALL, GROUP, OFTEN, TOPIC, VALUES, leave, read_all, shared, until

MEMBERS: dict[str, Any] = {
    "confluent-kafka": ConfluentMember,
    "confluent-kafka, newer protocol": NewerMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioMember,
}

Join = Callable[..., Member]


@pytest.fixture
def ottla_broker_properties() -> dict[str, str]:
    return OFTEN


@pytest.fixture(params=MEMBERS)
def kind(request: pytest.FixtureRequest) -> type[Member]:
    found: type[Member] = MEMBERS[request.param]
    return found


@pytest.fixture
def join(kind: type[Member], joined: list[Member], ottla_broker: EmbeddedBroker) -> Join:
    def join(instance: str | None = None) -> Member:
        joined.append(kind(ottla_broker.bootstrap, GROUP, TOPIC, instance))
        return joined[-1]

    return join


def state_of(broker: EmbeddedBroker) -> GroupState:
    """What the broker knows of the group, and of others that lie with it."""
    states = broker.broker.services.groups.states()
    (found,) = [state for state in states if GROUP in state.groups or GROUP in state.consumer_groups]
    return found


def generation_of(broker: EmbeddedBroker) -> int:
    state = state_of(broker)
    return state.groups[GROUP].generation if GROUP in state.groups else state.consumer_groups[GROUP].epoch


def test_one_member_reads_everything_and_goes_on_where_it_was(join: Join, joined: list[Member]) -> None:
    first = join()
    assert read_all(first) == VALUES
    first.commit()
    leave(first, joined)
    second = join()
    until(lambda: second.assignment() == ALL, second)
    assert [value for _ in range(5) for value in second.poll()] == []


def test_members_share_the_partitions_and_one_that_leaves_gives_its_own_back(
    join: Join, joined: list[Member]
) -> None:
    first = join()
    until(lambda: first.assignment() == ALL, first)
    second = join()
    until(shared(first, second), first, second)
    leave(first, joined)
    until(lambda: second.assignment() == ALL, second)


# kafka-python forgets to close sockets that could not be connected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_group_survives_its_broker(join: Join, ottla_broker: EmbeddedBroker, end: str) -> None:
    member = join()
    assert read_all(member) == VALUES
    member.commit()
    generation = generation_of(ottla_broker)
    getattr(ottla_broker, end)()
    ottla_broker.start()
    client = ConfluentClient(ottla_broker.bootstrap)
    client.produce(TOPIC, [Sent(b"more")])
    client.close()
    assert read_all(member, count=1) == [b"more"]
    member.commit()
    if isinstance(member, NewerMember):
        assert generation_of(ottla_broker) == generation, "nobody had to join again"


def test_a_static_member_comes_back_to_what_it_had(
    join: Join, joined: list[Member], ottla_broker: EmbeddedBroker
) -> None:
    first, second = join("one"), join("two")
    until(shared(first, second), first, second)
    before, generation = (first.assignment(), second.assignment()), generation_of(ottla_broker)
    leave(first, joined)
    again = join("one")
    until(lambda: bool(again.assignment()), again, second)
    assert (again.assignment(), second.assignment()) == before
    assert generation_of(ottla_broker) == generation


@pytest.mark.parametrize("kind", [ConfluentMember, KafkaPythonMember])
def test_cooperative_members_keep_what_they_need_not_give_away(
    kind: type[ConfluentMember | KafkaPythonMember], ottla_broker: EmbeddedBroker, joined: list[Member]
) -> None:
    first = kind(ottla_broker.bootstrap, GROUP, TOPIC, cooperative=True)
    joined.append(first)
    until(lambda: first.assignment() == ALL, first)
    second = kind(ottla_broker.bootstrap, GROUP, TOPIC, cooperative=True)
    joined.append(second)
    until(shared(first, second), first, second)
    # Only what the second one has now was ever taken from the first.
    assert [part for part in first.revoked if part] == [second.assignment()]
    assert len(second.assignment()) == 2


def test_a_commit_keeps_its_metadata_and_its_leader_epoch(join: Join, ottla_broker: EmbeddedBroker) -> None:
    member = join()
    until(lambda: member.assignment() == ALL, member)
    place = (TOPIC, 1)
    commit = Commit(3, "half way, ümlaut and all", None if isinstance(member, AioMember) else 0)
    member.commit_at(place, commit)
    assert member.committed(place).offset == 3
    found = state_of(ottla_broker).offsets.get(GROUP, TopicPartition(*place))
    assert found is not None
    # librdkafka sends the end of its C string too.
    assert (found.offset, found.metadata.removesuffix("\0")) == commit[:2]
    assert found.leader_epoch == (-1 if commit.leader_epoch is None else commit.leader_epoch)
    if not isinstance(member, AioMember):
        assert member.committed(place) == commit
