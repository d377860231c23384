"""A segment that begins with the snapshot of many producers is begun off the loop."""

from __future__ import annotations

import time

import pytest

from ottla.names import TopicPartition
from ottla.records.builder import NewRecord, build_batch
from ottla.storage.log.validation import TakesLongError
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import PRODUCE, Wire, produce

TOPIC = "t"


def _batch(producer_id: int, value_bytes: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    record = NewRecord(now_ms, None, bytes(value_bytes), [])
    return bytes(build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0))


def test_the_loop_does_not_write_the_snapshot_of_many_producers() -> None:
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC, config={"segment.bytes": 1 << 20})

        def append(producer_id: int, value_bytes: int) -> int:
            answer = wire.ask(PRODUCE, 9, produce(TOPIC, _batch(producer_id, value_bytes)))
            (slot,) = answer.responses[0].partition_responses
            assert slot.error_code == 0
            offset: int = slot.base_offset
            return offset

        for number in range(600):
            append(number, 10)
        append(1000, 800_000)
        log = broker.broker.logs.logs[TopicPartition(TOPIC, 0)]
        large = _batch(1001, 800_000)
        with pytest.raises(TakesLongError):
            broker.call(lambda: log.append_as_leader(large, 0, max_unpacked_bytes=1 << 20))
        assert len(log.segments) == 1
        assert [append(1001, 800_000), append(1002, 10)] == [601, 602]
        assert len(log.segments) == 2
