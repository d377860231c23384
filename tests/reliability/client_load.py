"""Producers that are real clients: confluent-kafka, kafka-python and aiokafka, idempotent or with acks=1.

All may try as long as it takes. One that is not idempotent may have one request under way, so that what it sends again
does not overtake.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors

from tests.reliability.load import Load
from tests.server.wire import Place

WINDOW = 400  # records without an answer
PAUSE_S = 0.01
BURST = 20
TRY_FOR_MS = 120_000


def quiet_clients() -> None:
    """They would tell of every broken connection, and there are many."""
    for name in ("kafka", "aiokafka"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class ClientLoad(Load):
    label = ""

    def __init__(self, broker: Place, topic: str, partition: int, *, is_idempotent: bool) -> None:
        super().__init__(self.label, broker, topic, partition, is_idempotent=is_idempotent)
        self.servers = f"127.0.0.1:{broker.port}"

    def note(self, number: int, offset: int | None) -> None:
        """Acknowledged. Clients say -1 where the broker knew the record already and did not say its offset."""
        self.sender.acked[number] = offset if offset is not None and offset >= 0 else None

    def may_send(self) -> bool:
        return self.unanswered < WINDOW and super().may_send()


class ConfluentLoad(ClientLoad):
    label = "confluent"

    def produce(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": self.sender.is_idempotent,
                "acks": "all" if self.sender.is_idempotent else "1",
                "max.in.flight": 5 if self.sender.is_idempotent else 1,
                "compression.type": "lz4",
                "linger.ms": 2,
                "message.timeout.ms": TRY_FOR_MS,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        while not self.stopping.is_set():
            for _ in range(BURST if self.may_send() else 0):
                number, value = self.next_value()
                producer.produce(
                    self.topic, value, partition=self.partition, on_delivery=self._delivered(number)
                )
            producer.poll(PAUSE_S)
            if self.error is not None:
                break
        if self.given_up:
            producer.purge()
        producer.flush(TRY_FOR_MS / 1000)

    def _delivered(self, number: int) -> Any:
        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None and not self.given_up:
                self.error = RuntimeError(f"{self.name} {number}: {error}")
            elif error is None:
                self.note(number, message.offset())

        return delivered


class KafkaPythonLoad(ClientLoad):
    label = "kafka-python"

    def produce(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.servers,
            enable_idempotence=self.sender.is_idempotent,
            acks="all" if self.sender.is_idempotent else 1,
            max_in_flight_requests_per_connection=5 if self.sender.is_idempotent else 1,
            compression_type="gzip",
            linger_ms=2,
            delivery_timeout_ms=TRY_FOR_MS,
            max_block_ms=TRY_FOR_MS,
            request_timeout_ms=5_000,
            reconnect_backoff_max_ms=200,
        )
        while not self.stopping.is_set():
            for _ in range(BURST if self.may_send() else 0):
                number, value = self.next_value()
                future = producer.send(self.topic, value, partition=self.partition)
                future.add_callback(lambda told, number=number: self.note(number, told.offset))
                future.add_errback(self._failed)
            time.sleep(PAUSE_S)
            if self.error is not None:
                break
        if not self.given_up:
            producer.flush(TRY_FOR_MS / 1000)
        producer.close(timeout=0 if self.given_up else None)

    def _failed(self, error: Exception) -> None:
        self.error = error


class AiokafkaLoad(ClientLoad):
    label = "aiokafka"

    def produce(self) -> None:
        asyncio.run(self._produce())

    async def _produce(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.servers,
            enable_idempotence=self.sender.is_idempotent,
            acks="all" if self.sender.is_idempotent else 1,
            linger_ms=2,
            request_timeout_ms=TRY_FOR_MS,  # for all tries together
            retry_backoff_ms=50,
        )
        await producer.start()
        try:
            await self._send_all(producer)
            if not self.given_up:
                await producer.flush()
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(producer.stop(), 1 if self.given_up else None)

    async def _send_all(self, producer: aiokafka.AIOKafkaProducer) -> None:
        while not self.stopping.is_set():
            for _ in range(BURST if self.may_send() else 0):
                number, value = self.next_value()
                future = await producer.send(self.topic, value, partition=self.partition)
                future.add_done_callback(lambda future, number=number: self._done(number, future))
            await asyncio.sleep(PAUSE_S)
            if self.error is not None:
                raise self.error

    def _done(self, number: int, future: asyncio.Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self.error = error
        else:
            self.note(number, future.result().offset)
