"""Transactional producers and read_committed readers, one pair for each real client. Calls end within TIMEOUT_S."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.clients.client import TIMEOUT_S
from tests.clients.loop_thread import LoopThread

LAST = "last"  # the value that ends what a reader reads of a partition


class Transactor(Protocol):
    """A producer with a transactional id, ready to begin."""

    fenced: tuple[type[Exception], ...]  # what it raises when another producer has its id

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, partition: int, value: str) -> None:
        """Send, and wait until the broker has it."""

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        """Where a group goes on in partition 0, if the transaction is committed."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int) -> list[str]:
        """What a read_committed consumer sees before LAST."""


class ConfluentTransactor:
    fenced = (confluent_kafka.KafkaException,)

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        config = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(config)
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        errors: list[Any] = []
        self._producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
        assert self._producer.flush(TIMEOUT_S) == 0
        if errors[0] is not None:
            raise confluent_kafka.KafkaException(errors[0])

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0}
        )
        offsets = [confluent_kafka.TopicPartition(topic, 0, offset)]
        self._producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
        consumer.close()

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        """Goes with its last reference."""

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int) -> list[str]:
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
        consumer = confluent_kafka.Consumer(config)
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        found: list[str] = []
        while LAST not in found:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, found
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
        consumer.close()
        return found[:-1]


class KafkaPythonTransactor:
    fenced = (kafka.errors.KafkaError,)

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        self._producer.send(topic, value.encode(), partition=partition).get(TIMEOUT_S)

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        where = {kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(where, group)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=TIMEOUT_S)
        _close_forgotten_sockets()

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int) -> list[str]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        consumer.assign([kafka.TopicPartition(topic, partition)])
        found: list[str] = []
        deadline = time.monotonic() + TIMEOUT_S
        while LAST not in found:
            assert time.monotonic() < deadline, found
            for records in consumer.poll(timeout_ms=1000).values():
                found += [record.value.decode() for record in records]
        consumer.close()
        return found[:-1]


def _close_forgotten_sockets() -> None:
    """kafka-python drops sockets that could not be connected, open as they are: some later test would be blamed."""
    for thing in gc.get_objects():
        if not isinstance(thing, socket.socket) or thing.fileno() < 0 or thing.family != socket.AF_INET:
            continue
        if thing.getsockname()[0] == "0.0.0.0":
            thing.close()


class AioTransactor:
    """aiokafka, on an event loop of its own."""

    fenced = (aiokafka.errors.KafkaError,)

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = LoopThread()
        self._run = self._loop.run
        self._run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        await self._producer.start()

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: str) -> None:
        self._run(self._producer.send_and_wait(topic, value.encode(), partition=partition))

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        where = {aiokafka.TopicPartition(topic, 0): offset}
        self._run(self._producer.send_offsets_to_transaction(where, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())
        self._loop.close()

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int) -> list[str]:
        async def work() -> list[str]:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
            )
            consumer.assign([aiokafka.TopicPartition(topic, partition)])
            await consumer.start()
            found: list[str] = []
            try:
                while LAST not in found:
                    record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
                    found.append(record.value.decode())
            finally:
                await consumer.stop()
            return found[:-1]

        return asyncio.run(work())
