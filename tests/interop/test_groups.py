"""Java consumers in classic groups on `ottla serve`: they share, die, come back, and lose nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.client import KafkaClient, record
from tests.interop.kafka import NEWEST
from tests.interop.serving import OttlaServer
from tests.interop.verifiable import VerifiableConsumer

PARTITIONS = 4
COUNT = 20  # records in each partition
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
_numbers = itertools.count()

Join = Callable[..., VerifiableConsumer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    data = tmp_path_factory.mktemp("groups") / "data"
    with OttlaServer(data, "--set", "group.initial.rebalance.delay.ms=500") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: OttlaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClient]:
    with KafkaClient(NEWEST, server.servers, tmp_path_factory.mktemp("client") / "log") as client:
        yield client


@pytest.fixture
def topic(client: KafkaClient) -> str:
    name = f"topic-{next(_numbers)}"
    client.create(name, PARTITIONS)
    write(client, name)
    return name


def write(client: KafkaClient, topic: str) -> None:
    for partition in range(PARTITIONS):
        client.produce(topic, [record(None, b"v", 0) for _ in range(COUNT)], {}, partition=partition)


@pytest.fixture
def join(server: OttlaServer, topic: str, tmp_path: Path) -> Iterator[Join]:
    """Starts members of the topic's group, and stops them in the end."""
    with ExitStack() as stack:

        def join(**options: str) -> VerifiableConsumer:
            log_file = tmp_path / "consumer.log"
            consumer = VerifiableConsumer(server.servers, f"g-{topic}", topic, log_file, **options)
            return stack.enter_context(consumer)

        yield join


def everything(topic: str) -> set[tuple[str, int]]:
    return {(topic, number) for number in range(PARTITIONS)}


def test_members_share_and_one_that_is_killed_is_followed(
    join: Join, topic: str, client: KafkaClient
) -> None:
    first = join()
    first.until(lambda one: one.owned == everything(topic) and len(one.read) == PARTITIONS * COUNT)
    second = join(session_timeout="6000")
    first.until(lambda one: len(one.owned) == 2)
    second.until(lambda one: len(one.owned) == 2)
    assert first.owned | second.owned == everything(topic)
    write(client, topic)
    second.until(lambda one: len(one.read) == 2 * COUNT)
    first.until(lambda one: len(one.read) == (PARTITIONS + 2) * COUNT)
    second.until(lambda one: set(one.committed.values()) == {2 * COUNT})
    second.kill()
    first.until(lambda one: one.owned == everything(topic))
    write(client, topic)
    first.until(lambda one: set(one.committed.values()) == {3 * COUNT} and len(one.committed) == PARTITIONS)
    read = first.read + second.read
    assert sorted(read) == [(at, offset) for at in range(PARTITIONS) for offset in range(3 * COUNT)]
    assert not first.failed_commits


def test_a_static_member_that_starts_again_disturbs_nobody(join: Join, topic: str) -> None:
    first, second = join(group_instance_id="one"), join(group_instance_id="two")
    first.until(lambda one: len(one.owned) == 2)
    second.until(lambda one: len(one.owned) == 2)
    before = first.owned
    moves = [event for event in second.events if event["name"].startswith("partitions_")]
    first.stop()
    again = join(group_instance_id="one")
    again.until(lambda one: bool(one.owned))
    assert again.owned == before
    assert [event for event in second.events if event["name"].startswith("partitions_")] == moves


def test_cooperative_members_keep_what_they_need_not_give_away(
    join: Join, topic: str, client: KafkaClient
) -> None:
    first = join(assignment_strategy=COOPERATIVE)
    first.until(lambda one: one.owned == everything(topic))
    second = join(assignment_strategy=COOPERATIVE)
    second.until(lambda one: len(one.owned) == 2)
    first.until(lambda one: len(one.owned) == 2)
    assert first.revoked == second.owned
    assert first.owned == everything(topic) - second.owned
    write(client, topic)
    second.until(lambda one: set(one.committed.values()) == {2 * COUNT})
    second.stop()
    first.until(lambda one: one.owned == everything(topic))


def test_a_group_goes_on_when_its_broker_was_killed(
    topic: str, join: Join, server: OttlaServer, client: KafkaClient
) -> None:
    members = [join(), join()]
    for member in members:
        member.until(lambda one: len(one.owned) == 2)
    write(client, topic)
    for member in members:
        member.until(lambda one: {one.committed.get(place) for place in one.owned} == {2 * COUNT})
    server.kill()
    server.start()
    write(client, topic)
    for member in members:
        member.until(lambda one: {one.committed.get(place) for place in one.owned} == {3 * COUNT})
    read = [place for member in members for place in member.read]
    # The broker that came back knew the group: nothing is read again.
    assert sorted(read) == [(at, offset) for at in range(PARTITIONS) for offset in range(3 * COUNT)]
