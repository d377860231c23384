"""Batches that take long to check: checked off the loop, in order for their client, out of the way of the others."""

from __future__ import annotations

import pytest

from ottla.names import TopicPartition
from ottla.records.compression.codec import Codec
from ottla.testing.embedded import EmbeddedBroker
from tests.reliability.attacks.packed_batches import packed_batch
from tests.server.bombs import bomb_batch
from tests.server.wire import PRODUCE, Wire, produce, records, wait_until

TOPIC = "t"
MIB = 1 << 20


@pytest.mark.parametrize("config", [{}, {"flush.messages": 1}])
def test_requests_of_a_connection_are_appended_in_order(config: dict[str, object]) -> None:
    packed = packed_batch(Codec.ZSTD, 8 * MIB)
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC, config=config)
        for _ in range(5):
            wire.send(PRODUCE, 9, produce(TOPIC, packed))
            wire.send(PRODUCE, 9, produce(TOPIC, records(b"small")))
        offsets = [_result(wire.receive(PRODUCE, 9)[1]) for _ in range(10)]
    assert offsets == [(0, offset) for offset in range(10)]


@pytest.mark.parametrize("config", [{}, {"flush.messages": 1}])
@pytest.mark.parametrize("value_bytes", [1000, 8 * MIB])
def test_their_bytes_are_counted_as_they_were_sent(config: dict[str, object], value_bytes: int) -> None:
    packed = packed_batch(Codec.ZSTD, value_bytes)
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC, config=config)
        assert _result(wire.ask(PRODUCE, 9, produce(TOPIC, packed))) == (0, 0)
        assert broker.call(lambda: broker.broker.metrics.topic(TOPIC).bytes_in) == len(packed)


def test_another_client_does_not_wait_for_them() -> None:
    """Not even in the same partition: the order of two clients' records is nobody's promise."""
    packed = packed_batch(Codec.GZIP, 100 * MIB)
    with EmbeddedBroker() as broker, Wire(broker) as wire, Wire(broker) as other:
        broker.create_topic(TOPIC)
        for _ in range(4):
            wire.send(PRODUCE, 9, produce(TOPIC, packed))
        wait_until(lambda: broker.broker.replicas.appends.slow.holds(wire.name))
        assert _result(other.ask(PRODUCE, 9, produce(TOPIC, records(b"small")))) == (0, 0)
        assert [_result(wire.receive(PRODUCE, 9)[1])[1] for _ in range(4)] == [1, 2, 3, 4]


def test_what_is_wrong_with_them_is_told_as_ever() -> None:
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC, config={"cleanup.policy": "compact"})
        damaged = bytearray(packed_batch(Codec.ZSTD, 8 * MIB))
        damaged[100] ^= 1
        assert _result(wire.ask(PRODUCE, 9, produce(TOPIC, bytes(damaged))))[0] == 2  # CORRUPT_MESSAGE
        assert _result(wire.ask(PRODUCE, 9, produce(TOPIC, bomb_batch("zstd"))))[0] == 87  # INVALID_RECORD
        assert _result(wire.ask(PRODUCE, 9, produce("nowhere", packed_batch(Codec.ZSTD, 8 * MIB))))[0] == 3
        assert not broker.broker.replicas.appends.slow.holds(wire.name)
        assert broker.broker.listener.budget.used_bytes == 0


def test_all_memory_comes_back_when_the_client_goes() -> None:
    packed = packed_batch(Codec.ZSTD, 64 * MIB)
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC)
        with Wire(broker) as wire:
            for _ in range(4):
                wire.send(PRODUCE, 9, produce(TOPIC, packed, acks=0))
            name = wire.name
            wait_until(lambda: broker.broker.replicas.appends.slow.holds(name))
        wait_until(lambda: not broker.broker.replicas.appends.slow.holds(name))
        wait_until(lambda: broker.broker.listener.budget.used_bytes == 0)


def test_a_broker_stops_while_they_are_checked() -> None:
    packed = packed_batch(Codec.GZIP, 100 * MIB)
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC)
        for _ in range(4):
            wire.send(PRODUCE, 9, produce(TOPIC, packed))
        wait_until(lambda: broker.broker.replicas.appends.slow.holds(wire.name))
        broker.restart()
        assert not broker.broker.logs.logs[TopicPartition(TOPIC, 0)].dir.failure


def _result(answer: object) -> tuple[int, int]:
    (slot,) = answer.responses[0].partition_responses  # type: ignore[attr-defined]
    return slot.error_code, slot.base_offset
