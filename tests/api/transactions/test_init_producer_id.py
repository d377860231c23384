"""InitProducerId, and what is remembered of producers: as many as a broker may, at a pace that it can keep up with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.api.transactions import init_producer_id
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.api.world import World
from tests.coordinator.transacting import Transacting
from tests.server.wire import Wire, produce, records

INIT_PRODUCER_ID = 22
MINUTE_MS = 60_000


@pytest.fixture
def data() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        yield directory


def send(world: World, producer_id: int, sequence: int = 0) -> Any:
    now_ms = world.runtime.now_ms()
    batch = records(b"x", timestamp=now_ms, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    (answer,) = world.ask(produce("t", batch), 9).responses[0].partition_responses
    return answer


def test_a_flood_of_producer_ids_makes_a_broker_forget_the_silent_ones(data: str) -> None:
    world = World(data, ottla_max_producer_ids="600", log_roll_jitter_ms="0")
    world.make_topic("t", 1)
    for producer_id in range(2_000):
        assert send(world, producer_id).error_code == 0
    log = world.logs.logs[TopicPartition("t", 0)]
    assert 500 <= len(log.producers.producers) <= 610
    assert send(world, 1_999).base_offset == 1_999  # a duplicate, and known as one
    assert send(world, 0, sequence=5).error_code == 0  # as after producer.id.expiration.ms
    world.restart()
    assert send(world, 1_999).base_offset == 1_999
    world.close()


def test_a_connection_that_asks_for_very_many_ids_is_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_producer_id, "_FREE_IDS", 3)
    with EmbeddedBroker() as broker:
        with Wire(broker) as wire:
            answers = [
                wire.ask(INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None)) for _ in range(5)
            ]
        assert [answer.throttle_time_ms for answer in answers] == [0, 0, 0, 10, 10]
        assert {answer.error_code for answer in answers} == {0}
        assert len({answer.producer_id for answer in answers}) == 5
        with Wire(broker) as wire:
            assert (
                wire.ask(INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None)).throttle_time_ms
                == 0
            )


def test_a_broker_takes_no_more_transactional_ids_than_it_may(data: str) -> None:
    world = Transacting(data, ottla_max_transactional_ids="3")
    producer = world.begin("used")
    assert world.add(producer, name="used") == [0]
    assert world.end(producer, name="used").error_code == 0
    world.begin("idle")
    world.begin("new")
    assert world.init("more").error_code == ErrorCode.POLICY_VIOLATION
    assert world.begin("used")  # those that are there go on
    world.close()


def test_partitions_of_transactions_count_too(data: str) -> None:
    world = Transacting(data, ottla_max_transactional_ids="3")
    world.make_topic("many", 40)
    producer = world.begin("used")
    assert world.add(producer, range(20), topic="many", name="used") == [0] * 20
    assert set(world.add(producer, range(40), topic="many", name="used")) == {ErrorCode.POLICY_VIOLATION}
    assert world.add(producer, range(20), topic="many", name="used") == [0] * 20
    assert world.end(producer, name="used").error_code == 0
    assert world.init("x" * 1_001).error_code == ErrorCode.INVALID_REQUEST
    assert world.init("x" * 1_000).error_code == 0
    world.close()


def test_ids_that_were_never_used_make_room_for_others(data: str) -> None:
    world = Transacting(data, ottla_max_transactional_ids="4", transaction_state_log_num_partitions="1")
    producer = world.begin("used")
    assert world.add(producer, name="used") == [0]
    assert world.end(producer, name="used").error_code == 0
    for name in ("a", "b", "c"):
        world.begin(name)
    world.runtime.advance(16 * MINUTE_MS)
    world.begin("more")
    known = {name for state in world.services.transactions.states() for name in state.transactions}
    assert known == {"used", "more"}
    world.restart()
    known = {name for state in world.services.transactions.states() for name in state.transactions}
    assert known == {"used", "more"}
    world.close()


def test_many_transactions_that_time_out_together_are_all_aborted(data: str) -> None:
    world = Transacting(data, transaction_state_log_num_partitions="1")
    for number in range(450):
        producer = world.begin(f"id-{number}")
        assert world.add(producer, name=f"id-{number}") == [0]
    world.runtime.advance(3 * MINUTE_MS)
    world.runtime.run_pending()
    states = {
        txn.status.name
        for state in world.services.transactions.states()
        for txn in state.transactions.values()
    }
    assert states == {"COMPLETE_ABORT"}
    world.close()
