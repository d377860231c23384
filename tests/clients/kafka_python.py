"""kafka-python 3."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.clients.client import TIMEOUT_S, Read, Sent

MAX_BYTES = 8 << 20


class KafkaPythonClient:
    sends_null_headers = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _admin(self) -> AbstractContextManager[KafkaAdminClient]:
        # One for each use: one that lives while the broker is down leaves the sockets of its attempts unclosed.
        return closing(KafkaAdminClient(bootstrap_servers=self._bootstrap))

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config or {})}
        with self._admin() as admin:
            admin.create_topics({name: options})

    def delete_topic(self, name: str) -> None:
        with self._admin() as admin:
            admin.delete_topics([name])

    def topics(self) -> set[str]:
        with self._admin() as admin:
            return set(admin.list_topics())

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=5,
            max_request_size=MAX_BYTES,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(TIMEOUT_S)
            return [future.get(TIMEOUT_S).offset for future in futures]
        finally:
            producer.close()

    def consume(self, topic: str, offset: int, count: int) -> list[Read]:
        with self._consumer() as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            found: list[Read] = []
            deadline = time.monotonic() + TIMEOUT_S
            while len(found) < count:
                assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
                for records in consumer.poll(timeout_ms=1000, max_records=count - len(found)).values():
                    found += [
                        Read(record.offset, record.value, record.key, tuple(record.headers), record.timestamp)
                        for record in records
                    ]
            return found

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=50,
            max_partition_fetch_bytes=MAX_BYTES,
        )

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        partition = TopicPartition(topic, 0)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
            return None if found is None else found.offset

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = TopicPartition(topic, 0)
        with self._consumer() as consumer:
            first = consumer.beginning_offsets([partition])[partition]
            return first, consumer.end_offsets([partition])[partition]

    def set_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        with self._admin() as admin:
            outcome = admin.alter_configs([resource])["topic"][topic]
        if outcome != "OK":
            raise RuntimeError(outcome)

    def config(self, topic: str, key: str) -> str | None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, None)
        with self._admin() as admin:
            found = admin.describe_configs([resource], config_filter="all")
        value: str | None = found["topic"][topic][key]["value"]
        return value

    def delete_records(self, topic: str, before: int) -> None:
        with self._admin() as admin:
            admin.delete_records({TopicPartition(topic, 0): before})

    def close(self) -> None:
        """Nothing is kept open."""
