"""Transactions with real clients: what is committed is read, once; what is aborted is never seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.testing.embedded import EmbeddedBroker
from tests.clients.client import TIMEOUT_S
from tests.clients.transactors import (
    LAST,
    AioTransactor,
    ConfluentTransactor,
    KafkaPythonTransactor,
    Transactor,
)

KINDS: dict[str, Any] = {
    "confluent-kafka": ConfluentTransactor,
    "kafka-python": KafkaPythonTransactor,
    "aiokafka": AioTransactor,
}
TOPIC, GROUP = "out", "workers"
MINUTE_MS = 60_000

Make = Callable[..., Transactor]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Transactor]:
    found: type[Transactor] = KINDS[request.param]
    return found


@pytest.fixture
def make(kind: type[Transactor], ottla_broker: EmbeddedBroker) -> Iterator[Make]:
    """Producers, closed in the end; all clients take topic `out` of two partitions, and `in` of one."""
    ottla_broker.create_topic(TOPIC, 2)
    ottla_broker.create_topic("in")
    made: list[Transactor] = []

    def make(transactional_id: str = "t", timeout_ms: int = MINUTE_MS) -> Transactor:
        made.append(kind(ottla_broker.bootstrap, transactional_id, timeout_ms))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


def committed(kind: Any, broker: EmbeddedBroker, partition: int = 0) -> list[str]:
    """All that a read_committed consumer of that kind sees of a partition."""
    last = ConfluentTransactor(broker.bootstrap, "last")
    last.begin()
    last.send(TOPIC, partition, LAST)
    last.commit()
    return kind.read(broker.bootstrap, TOPIC, partition)


def stable_offset(broker: EmbeddedBroker, partition: int = 0) -> int:
    """Where read_committed consumers have to stop."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    where = {TopicPartition(TOPIC, partition): OffsetSpec.latest()}
    (found,) = admin.list_offsets(where, isolation_level=IsolationLevel.READ_COMMITTED).values()
    offset: int = found.result(TIMEOUT_S).offset
    return offset


def group_offset(broker: EmbeddedBroker) -> int:
    """Where the group goes on in `in`."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
    (found,) = consumer.committed([TopicPartition("in", 0)], TIMEOUT_S)
    consumer.close()
    offset: int = found.offset
    return offset


def test_what_is_aborted_is_never_seen(
    ottla_broker: EmbeddedBroker, kind: type[Transactor], make: Make
) -> None:
    producer = make()
    for number in range(6):
        producer.begin()
        for partition in range(2):
            producer.send(TOPIC, partition, f"{number}")
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    for partition in range(2):
        assert committed(kind, ottla_broker, partition) == ["0", "2", "4"]


def test_readers_wait_for_the_end_of_a_transaction(ottla_broker: EmbeddedBroker, make: Make) -> None:
    first, second = make("first"), make("second")
    first.begin()
    first.send(TOPIC, 0, "a")
    second.begin()
    second.send(TOPIC, 0, "b")
    second.commit()
    assert stable_offset(ottla_broker) == 0
    first.commit()
    assert stable_offset(ottla_broker) == 4  # two records, two markers


def test_a_producer_that_is_replaced_can_commit_nothing(
    ottla_broker: EmbeddedBroker, kind: type[Transactor], make: Make
) -> None:
    old = make()
    old.begin()
    old.send(TOPIC, 0, "old")
    new = make()
    new.begin()
    new.send(TOPIC, 0, "new")
    with pytest.raises(kind.fenced):
        old.commit()
    new.commit()
    assert committed(kind, ottla_broker) == ["new"]


def test_a_producer_that_takes_too_long_can_commit_nothing(
    ottla_broker: EmbeddedBroker, kind: type[Transactor], make: Make
) -> None:
    slow = make(timeout_ms=30_000)
    slow.begin()
    slow.send(TOPIC, 0, "slow")
    ottla_broker.clock.advance(ms=2 * MINUTE_MS)
    assert stable_offset(ottla_broker) == 2  # the record and the marker of its end
    with pytest.raises(kind.fenced):
        slow.commit()
    assert committed(kind, ottla_broker) == []


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_count_if_the_transaction_does(
    ottla_broker: EmbeddedBroker, kind: type[Transactor], make: Make, commits: bool
) -> None:
    producer = make()
    producer.begin()
    producer.send(TOPIC, 1, "x")
    producer.send_offset("in", 7, GROUP)
    if commits:
        producer.commit()
    else:
        producer.abort()
    assert group_offset(ottla_broker) == (7 if commits else -1001)
    assert committed(kind, ottla_broker, 1) == (["x"] if commits else [])


# kafka-python forgets to close sockets that could not be connected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_producer_goes_on_where_the_broker_died(
    ottla_broker: EmbeddedBroker, kind: type[Transactor], make: Make
) -> None:
    producer = make()
    for number in range(2):
        producer.begin()
        producer.send(TOPIC, 0, f"{number}")
        ottla_broker.kill()
        ottla_broker.start()
        producer.commit()
    assert committed(kind, ottla_broker) == ["0", "1"]


def test_read_process_write_takes_each_record_once(ottla_broker: EmbeddedBroker) -> None:
    """Every second transaction is aborted, and done again by a new consumer."""
    ottla_broker.create_topic(TOPIC, 2)
    ottla_broker.create_topic("in")
    feeder = Producer({"bootstrap.servers": ottla_broker.bootstrap, "linger.ms": 0})
    for number in range(30):
        feeder.produce("in", str(number))
    assert feeder.flush(TIMEOUT_S) == 0
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": "worker"})
    producer.init_transactions(TIMEOUT_S)
    for round_number in range(5):
        consumer = Consumer(
            {
                "bootstrap.servers": ottla_broker.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["in"])
        batch = consumer.consume(10, TIMEOUT_S)
        producer.begin_transaction()
        for message in batch:
            value = message.value() or b""
            producer.produce(TOPIC, value, partition=int(value) % 2)
        producer.send_offsets_to_transaction(
            [TopicPartition("in", 0, (batch[-1].offset() or 0) + 1)],
            consumer.consumer_group_metadata(),
            TIMEOUT_S,
        )
        if round_number % 2 == 0:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
        consumer.close()
    for partition in range(2):
        expected = [str(number) for number in range(30) if number % 2 == partition]
        assert committed(ConfluentTransactor, ottla_broker, partition) == expected
