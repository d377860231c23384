"""Transactions with a real client: what is committed is read, once; what is aborted is never seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.embedded import EmbeddedBroker

TIMEOUT_S = 20


@pytest.fixture
def topics(ottla_broker: EmbeddedBroker) -> tuple[str, str]:
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap})
    made = admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 2, 1)])
    for future in made.values():
        future.result(TIMEOUT_S)
    return "in", "out"


@pytest.fixture
def make_producer(ottla_broker: EmbeddedBroker) -> Callable[[str], Producer]:
    def make(transactional_id: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": ottla_broker.bootstrap,
                "transactional.id": transactional_id,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        return producer

    return make


def _consumer(broker: EmbeddedBroker, isolation: str = "read_committed", **more: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            **more,
        }
    )


def _read(
    broker: EmbeddedBroker, topic: str, partitions: int, isolation: str = "read_committed"
) -> list[str]:
    """Everything up to the end of each partition."""
    consumer = _consumer(broker, isolation)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF"
            ended += 1
        else:
            found.append(message.value().decode())
    consumer.close()
    return sorted(found)


def test_what_is_aborted_is_never_seen(
    ottla_broker: EmbeddedBroker, topics: tuple[str, str], make_producer: Callable[[str], Producer]
) -> None:
    producer = make_producer("t")
    for number in range(6):
        producer.begin_transaction()
        for index in range(2):
            producer.produce("out", f"{number}-{index}", partition=index)
        if number % 2:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    expected = sorted(f"{number}-{index}" for number in (0, 2, 4) for index in range(2))
    assert _read(ottla_broker, "out", 2) == expected
    assert len(_read(ottla_broker, "out", 2, "read_uncommitted")) == 12


def test_a_producer_that_is_replaced_can_commit_nothing(
    ottla_broker: EmbeddedBroker, topics: tuple[str, str], make_producer: Callable[[str], Producer]
) -> None:
    old = make_producer("t")
    old.begin_transaction()
    old.produce("out", "old", partition=0)
    old.flush(TIMEOUT_S)
    new = make_producer("t")
    new.begin_transaction()
    new.produce("out", "new", partition=0)
    with pytest.raises(KafkaException, match=r"(?i)fenced"):
        old.commit_transaction(TIMEOUT_S)
    new.commit_transaction(TIMEOUT_S)
    assert _read(ottla_broker, "out", 2) == ["new"]


def test_read_process_write_takes_each_record_once(
    ottla_broker: EmbeddedBroker, topics: tuple[str, str], make_producer: Callable[[str], Producer]
) -> None:
    feeder = make_producer("feeder")
    feeder.begin_transaction()
    for number in range(30):
        feeder.produce("in", str(number))
    feeder.commit_transaction(TIMEOUT_S)
    producer = make_producer("worker")
    for round_number in range(6):
        # A new consumer each time: where it goes on is what was committed.
        consumer = _consumer(ottla_broker)
        consumer.subscribe(["in"])
        messages: list[Any] = []
        while len(messages) < 10 and len(messages) < 30 - (round_number + 1) // 2 * 10:
            messages += [one for one in consumer.consume(10, 1.0) if one.error() is None]
        batch = messages[:10]
        producer.begin_transaction()
        for message in batch:
            producer.produce("out", message.value().decode(), partition=int(message.value()) % 2)
        offset = batch[-1].offset() + 1 if batch else 30
        producer.send_offsets_to_transaction(
            [TopicPartition("in", 0, offset)], consumer.consumer_group_metadata(), TIMEOUT_S
        )
        if round_number % 2 == 0:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        consumer.close()
    assert _read(ottla_broker, "out", 2) == sorted(str(number) for number in range(30))
