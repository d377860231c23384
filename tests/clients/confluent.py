"""confluent-kafka: librdkafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.clients.client import TIMEOUT_S, Read, Sent

MAX_BYTES = 8 << 20


class ConfluentClient:
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self._base: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "receive.message.max.bytes": 100_000_000,
        }
        self._admin = AdminClient(self._base)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self._done(self._admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))]))

    def delete_topic(self, name: str) -> None:
        self._done(self._admin.delete_topics([name]))

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[int]:
        producer = Producer(
            self._base
            | {
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 5,
                "message.max.bytes": MAX_BYTES,
                "message.timeout.ms": TIMEOUT_S * 1000,
            }
        )
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def delivered(number: int) -> Any:
            def tell(error: KafkaError | None, message: Any) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offsets[number] = message.offset()

            return tell

        for number, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                0,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=delivered(number),
            )
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0
        if errors:
            raise KafkaException(errors[0])
        return [offsets[number] for number in range(len(records))]

    def consume(self, topic: str, offset: int, count: int) -> list[Read]:
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, 0, offset)])
            found: list[Read] = []
            while len(found) < count:
                messages = consumer.consume(count - len(found), timeout=TIMEOUT_S)
                assert messages, f"only {len(found)} of {count} records came"
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    found.append(_read(message))
            return found
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            self._base
            | {
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "fetch.message.max.bytes": MAX_BYTES,
            }
        )

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        try:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], timeout=TIMEOUT_S)
            return None if found.offset == OFFSET_END else found.offset
        finally:
            consumer.close()

    def bounds(self, topic: str) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
            return first, end
        finally:
            consumer.close()

    def set_config(self, topic: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._done(self._admin.incremental_alter_configs([resource]))

    def config(self, topic: str, key: str) -> str | None:
        (future,) = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        value: str | None = future.result(TIMEOUT_S)[key].value
        return value

    def delete_records(self, topic: str, before: int) -> None:
        self._done(self._admin.delete_records([TopicPartition(topic, 0, before)]))

    def close(self) -> None:
        del self._admin

    @staticmethod
    def _done(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(TIMEOUT_S)


def _read(message: Any) -> Read:
    headers = tuple(message.headers() or ())
    return Read(message.offset(), message.value(), message.key(), headers, message.timestamp()[1])
