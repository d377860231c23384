"""aiokafka, on an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from tests.clients.client import TIMEOUT_S, Read, Sent

T = TypeVar("T")

MAX_BYTES = 8 << 20


class AioClient:
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._runner = asyncio.Runner()

    def _run(self, work: Awaitable[T]) -> T:
        async def limited() -> T:
            return await asyncio.wait_for(work, TIMEOUT_S)

        return self._runner.run(limited())

    def _admin(self, work: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def with_admin() -> T:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                return await work(admin)
            finally:
                await admin.close()

        return self._run(with_admin())

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        topic = NewTopic(name, partitions, 1, topic_configs=dict(config or {}))
        _raise_first(self._admin(lambda admin: admin.create_topics([topic])).topic_errors)

    def delete_topic(self, name: str) -> None:
        _raise_first(self._admin(lambda admin: admin.delete_topics([name])).topic_error_codes)

    def topics(self) -> set[str]:
        return set(self._admin(lambda admin: admin.list_topics()))

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[int]:
        async def work() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                acks="all",
                linger_ms=5,
                max_request_size=MAX_BYTES,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=0,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                return [(await future).offset for future in futures]
            finally:
                await producer.stop()

        return self._run(work())

    def consume(self, topic: str, offset: int, count: int) -> list[Read]:
        async def work(consumer: AIOKafkaConsumer) -> list[Read]:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            found: list[Any] = []
            while len(found) < count:
                record = await consumer.getone()
                found.append(
                    Read(record.offset, record.value, record.key, tuple(record.headers), record.timestamp)
                )
            return found

        return self._consumer(work)

    def _consumer(self, work: Callable[[AIOKafkaConsumer], Awaitable[T]]) -> T:
        async def with_consumer() -> T:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=50,
                max_partition_fetch_bytes=MAX_BYTES,
            )
            await consumer.start()
            try:
                return await work(consumer)
            finally:
                await consumer.stop()

        return self._run(with_consumer())

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        partition = TopicPartition(topic, 0)
        found = self._consumer(lambda consumer: consumer.offsets_for_times({partition: timestamp_ms}))
        return None if found[partition] is None else found[partition].offset

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = TopicPartition(topic, 0)

        async def work(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            first = await consumer.beginning_offsets([partition])
            end = await consumer.end_offsets([partition])
            return first[partition], end[partition]

        return self._consumer(work)

    def set_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        for response in self._admin(lambda admin: admin.alter_configs([resource])):
            _raise_first(response.resources, name_at=3)

    def config(self, topic: str, key: str) -> str | None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._admin(lambda admin: admin.describe_configs([resource]))
        _, _, _, _, entries = response.resources[0]
        value: str | None = next(entry[1] for entry in entries if entry[0] == key)
        return value

    def delete_records(self, topic: str, before: int) -> None:
        wanted = {TopicPartition(topic, 0): RecordsToDelete(before_offset=before)}
        self._admin(lambda admin: admin.delete_records(wanted))

    def close(self) -> None:
        self._runner.close()


def _raise_first(rows: Sequence[tuple[Any, ...]], name_at: int = 0) -> None:
    """aiokafka's admin hands errors out as they came: rows of (name, code, ...), or of (code, text, type, name)."""
    for row in rows:
        code = row[1] if name_at == 0 else row[0]
        if code:
            raise for_code(code)(f"{row[name_at]}: {row}")
