"""What a client writes into internal topics itself: understood, or refused. What lies there already hurts nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from ottla import names
from ottla.api.produce.produce import ADMIN_CLIENT_ID
from ottla.internal_topics.group_records import GroupMetadata, GroupRecordFormat, GroupValue
from ottla.internal_topics.transaction_records import Transaction, TransactionRecord, TransactionRecordFormat
from ottla.records.builder import NewRecord, build_batch
from ottla.testing.embedded import EmbeddedBroker
from tests.logtools.making import check, open_manager

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP_KEY = pack(">hh1s", 2, 1, b"g")
POISON = pack(">hhihhqi", 3, -1, 1, -1, -1, 0, 0)  # a group whose protocol type is null
ODD_STATE = bytearray(
    TransactionRecordFormat().encode(TransactionRecord("t", Transaction(1, 0, 1000)))[1] or b""
)
ODD_STATE[16] = 99


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    with EmbeddedBroker(settings) as running:
        running.create_topic("t")
        commit(running, 1)
        producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": "makes the topic"})
        producer.init_transactions()
        yield running


def commit(broker: EmbeddedBroker, offset: int) -> int:
    """Commit an offset of a group, and say what the broker then knows."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    try:
        place = TopicPartition("t", 0, offset)
        consumer.commit(offsets=[place], asynchronous=False)
        return int(consumer.committed([place])[0].offset)
    finally:
        consumer.close()


def write(broker: EmbeddedBroker, topic: str, key: bytes | None, value: bytes | None) -> KafkaError | None:
    told: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": ADMIN_CLIENT_ID})
    producer.produce(
        topic, value, key, partition=0, on_delivery=lambda error, message: told.append((error, message))
    )
    producer.flush()
    return told[0][0]


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        (OFFSETS, GROUP_KEY, POISON),
        (OFFSETS, GROUP_KEY, POISON[:7]),
        (OFFSETS, None, b"no key"),
        (OFFSETS, pack(">h", 99), b"of a type that nobody knows"),
        (TRANSACTIONS, pack(">hh1s", 0, 1, b"t"), bytes(ODD_STATE)),
        (TRANSACTIONS, pack(">hh", 0, -1), None),
    ],
)
def test_a_record_that_cannot_be_understood_is_refused(
    broker: EmbeddedBroker, topic: str, key: bytes | None, value: bytes | None
) -> None:
    error = write(broker, topic, key, value)
    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD
    assert not error.retriable()


def test_a_record_that_can_be_understood_is_taken(broker: EmbeddedBroker) -> None:
    value = GroupValue("consumer", 1, None, None, 0, ())
    assert (
        write(broker, OFFSETS, *GroupRecordFormat().encode(GroupMetadata("written by hand", value))) is None
    )
    assert (
        write(broker, TRANSACTIONS, *TransactionRecordFormat().encode(TransactionRecord("gone", None)))
        is None
    )


@pytest.mark.parametrize("value", [POISON, POISON[:7]])
def test_a_record_that_lies_there_is_left_out_with_a_line_and_all_others_count(
    tmp_path: Path, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedBroker({"offsets.topic.num.partitions": 1}, tmp_path) as broker:
        broker.create_topic("t")
        assert commit(broker, 7) == 7
    manager = open_manager(tmp_path)
    log = manager.get(names.TopicPartition(OFFSETS, 0))
    assert log is not None
    offset = log.end_offset
    log.append_as_leader(build_batch([NewRecord(1, GROUP_KEY, value, [])]), 0)
    manager.close()

    found = [finding for finding in check(tmp_path) if finding.level == "defect"]
    assert [(finding.code, finding.offset) for finding in found] == [("coordinator-record", offset)]
    with caplog.at_level(logging.ERROR), EmbeddedBroker({}, tmp_path) as broker:
        assert commit(broker, 8) == 8
    assert f"{OFFSETS}-0, offset {offset}: a record that cannot be understood is left out" in caplog.text
