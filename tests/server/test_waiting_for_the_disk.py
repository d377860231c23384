"""An append that leaves the event loop for its disk is answered when it is done."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import PRODUCE, Wire, records
from tests.server.wire import produce as wire_produce


def produce(broker: EmbeddedBroker, acks: str) -> int:
    """One record; its offset."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": acks})
    offsets: list[Any] = []
    producer.produce("orders", b"value", on_delivery=lambda error, message: offsets.append(message.offset()))
    assert producer.flush(60) == 0
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


def test_a_refusal_that_comes_late_needs_nothing_of_the_request_any_more(
    ottla_broker: EmbeddedBroker,
) -> None:
    """Its records lay in the receive buffer, which others have used since."""
    ottla_broker.create_topic("orders", config={"flush.messages": 1})
    with Wire(ottla_broker) as wire, Wire(ottla_broker) as other:
        before = b"".join(
            b"".join(frame.request_parts(PRODUCE, 9, number, "w", wire_produce("orders", records(b"good"))))
            for number in range(50)
        )
        wire.send_bytes(before)
        damaged = bytearray(records(b"damaged"))
        damaged[-1] ^= 1
        wire.send(PRODUCE, 9, wire_produce("orders", bytes(damaged)))
        for _ in range(50):
            other.ping()
        answers = [wire.receive(PRODUCE, 9)[1].responses[0].partition_responses[0] for _ in range(51)]
    assert [answer.base_offset for answer in answers] == [*range(50), -1]
    assert answers[-1].error_code == ErrorCode.CORRUPT_MESSAGE
