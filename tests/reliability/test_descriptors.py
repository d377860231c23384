"""More partitions and connections than a process may have files open: none of them stops the broker, now or later."""

from __future__ import annotations

import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.serving import TIMEOUT_S, Serve

LIMIT = 256
PARTITIONS = 600


class ConfinedServe(Serve):
    """`ottla serve` that may have LIMIT descriptors."""

    PREFIX: ClassVar = ("prlimit", f"--nofile={LIMIT}:{LIMIT}")

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "--data", str(directory / "data"), "--listen", "127.0.0.1:0")


def make_topic(bootstrap: str, name: str, partitions: int) -> KafkaError | None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(TIMEOUT_S)
    except KafkaException as error:
        found: KafkaError = error.args[0]
        return found
    return None


def write_to_all(bootstrap: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITIONS):
        producer.produce("many", value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def read_all(bootstrap: str) -> dict[int, list[bytes]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition("many", number, 0) for number in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {}
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        error = message.error()
        if error is None:
            found.setdefault(message.partition() or 0, []).append(message.value() or b"")
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    return found


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_more_partitions_than_descriptors_are_written_read_and_there_after_a_restart(
    tmp_path: Path, end: signal.Signals
) -> None:
    with ConfinedServe(tmp_path) as broker:
        assert make_topic(broker.bootstrap, "many", PARTITIONS) is None
        write_to_all(broker.bootstrap, b"one")
        broker.end(end)
        assert "offline" not in broker.errors.read_text()
    with ConfinedServe(tmp_path) as broker:
        write_to_all(broker.bootstrap, b"two")
        assert read_all(broker.bootstrap) == {number: [b"one", b"two"] for number in range(PARTITIONS)}
        assert broker.end() == 0
        assert "Too many open files" not in broker.errors.read_text()


def test_partitions_beyond_what_can_be_held_are_refused_with_words(tmp_path: Path) -> None:
    with ConfinedServe(tmp_path) as broker:
        error = make_topic(broker.bootstrap, "too-many", 10 * LIMIT + 1)
        assert error is not None
        assert error.code() == KafkaError.POLICY_VIOLATION
        assert "ottla.max.partitions" in error.str()


def test_connections_are_refused_before_files_suffer(tmp_path: Path) -> None:
    with ConfinedServe(tmp_path) as broker, ExitStack() as open_ones:
        assert make_topic(broker.bootstrap, "many", PARTITIONS) is None
        host, _, port = broker.bootstrap.rpartition(":")
        for _ in range(2 * LIMIT):
            connection = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
            open_ones.callback(connection.close)
        open_ones.close()
        write_to_all(broker.bootstrap, b"one")
        assert broker.end() == 0
        text = broker.errors.read_text()
        assert "refusing a connection" in text
        assert "Too many open files" not in text
        assert "offline" not in text
