"""An append that leaves the event loop for its disk is answered when it is done."""

from __future__ import annotations

from confluent_kafka import Producer

from ottla.testing.embedded import EmbeddedBroker


def produce(broker: EmbeddedBroker, acks: str) -> int:
    """One record; its offset."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": acks})
    offsets: list[int] = []
    producer.produce("orders", b"value", on_delivery=lambda error, message: offsets.append(message.offset()))
    assert producer.flush(20) == 0
    return offsets[0]


def test_the_first_append_of_a_leader_epoch_is_answered(ottla_broker: EmbeddedBroker) -> None:
    ottla_broker.create_topic("orders")
    assert produce(ottla_broker, "1") == 0
    ottla_broker.kill()
    ottla_broker.start()
    assert [produce(ottla_broker, acks) for acks in ("1", "all")] == [1, 2]


def test_an_append_that_waits_for_the_disk_is_answered(ottla_broker: EmbeddedBroker) -> None:
    ottla_broker.create_topic("orders", config={"flush.messages": 1})
    assert [produce(ottla_broker, acks) for acks in ("1", "all")] == [0, 1]
