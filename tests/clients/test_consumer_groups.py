"""librdkafka in consumer groups of the newer protocol: partitions are shared, moved, kept, and commits are safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.testing.embedded import EmbeddedBroker
from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.sharing import ALL, GROUP, TOPIC, VALUES, leave, make_topic, read_all, shared, until


class Member:
    """A consumer that reads from the beginning and commits when it is told."""

    def __init__(self, bootstrap: str, topic: str = TOPIC, **config: Any) -> None:
        self.revoked: list[set[tuple[str, int]]] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **{
                    key.replace("_", "."): value
                    for key, value in {"group_protocol": "consumer", **config}.items()
                },
            }
        )
        self.consumer.subscribe([topic], on_revoke=self._on_revoke)

    def _on_revoke(self, _: Consumer, partitions: list[Any]) -> None:
        self.revoked.append({(at.topic, at.partition) for at in partitions})

    def poll(self) -> list[bytes]:
        messages = self.consumer.consume(100, timeout=0.1)
        assert all(message.error() is None for message in messages), [m.error() for m in messages]
        return [message.value() or b"" for message in messages]

    def assignment(self) -> set[tuple[str, int]]:
        return {(at.topic, at.partition) for at in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


Join = Callable[..., Member]


@pytest.fixture
def ottla_broker_properties() -> dict[str, str]:
    """Heartbeats often enough for a test."""
    return {
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "20000",
    }


@pytest.fixture
def joined(ottla_broker: EmbeddedBroker) -> Iterator[list[Member]]:
    make_topic(ottla_broker.bootstrap)
    members: list[Member] = []
    yield members
    for member in members:
        member.close()


@pytest.fixture
def join(joined: list[Member], ottla_broker: EmbeddedBroker) -> Join:
    def join(topic: str = TOPIC, **config: Any) -> Member:
        joined.append(Member(ottla_broker.bootstrap, topic, **config))
        return joined[-1]

    return join


def group_of(broker: EmbeddedBroker) -> ConsumerGroup:
    groups = broker.broker.services.groups
    (found,) = [state.consumer_groups[GROUP] for state in groups.states() if GROUP in state.consumer_groups]
    return found


def test_one_member_reads_everything_and_goes_on_where_it_was(join: Join, joined: list[Member]) -> None:
    first = join()
    assert read_all(first) == VALUES
    first.consumer.commit(asynchronous=False)
    leave(first, joined)
    second = join()
    until(lambda: second.assignment() == ALL, second)
    assert [value for _ in range(5) for value in second.poll()] == []


def test_members_share_the_partitions_and_keep_what_they_need_not_give_away(
    join: Join, joined: list[Member]
) -> None:
    first = join()
    until(lambda: first.assignment() == ALL, first)
    second = join()
    until(shared(first, second), first, second)
    assert [part for part in first.revoked if part] == [second.assignment()]
    assert len(second.assignment()) == 2
    leave(first, joined)
    until(lambda: second.assignment() == ALL, second)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_group_survives_its_broker(join: Join, ottla_broker: EmbeddedBroker, end: str) -> None:
    member = join()
    assert read_all(member) == VALUES
    member.consumer.commit(asynchronous=False)
    epoch = group_of(ottla_broker).epoch
    getattr(ottla_broker, end)()
    ottla_broker.start()
    client = ConfluentClient(ottla_broker.bootstrap)
    client.produce(TOPIC, [Sent(b"more")])
    client.close()
    assert read_all(member, count=1) == [b"more"]
    member.consumer.commit(asynchronous=False)
    assert group_of(ottla_broker).epoch == epoch, "nobody had to join again"


def test_a_static_member_comes_back_to_what_it_had(
    join: Join, joined: list[Member], ottla_broker: EmbeddedBroker
) -> None:
    first, second = join(group_instance_id="one"), join(group_instance_id="two")
    until(shared(first, second), first, second)
    before, epoch = (first.assignment(), second.assignment()), group_of(ottla_broker).epoch
    leave(first, joined)
    again = join(group_instance_id="one")
    until(lambda: bool(again.assignment()), again, second)
    assert (again.assignment(), second.assignment()) == before
    assert group_of(ottla_broker).epoch == epoch


def test_members_by_a_pattern_get_topics_that_come_later(join: Join, ottla_broker: EmbeddedBroker) -> None:
    member = join("^ord.*")
    until(lambda: member.assignment() == ALL, member)
    # Patterns are looked up again after ten seconds at the earliest.
    ottla_broker.clock.advance(11_000)
    ottla_broker.create_topic("ordinary")
    until(lambda: member.assignment() == {*ALL, ("ordinary", 0)}, member)


def test_a_group_moves_from_the_classic_protocol_to_the_newer_one_and_back(
    join: Join, joined: list[Member], ottla_broker: EmbeddedBroker
) -> None:
    classic = {"group_protocol": "classic", "session_timeout_ms": 20000, "heartbeat_interval_ms": 200}
    first = join(**classic)
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
