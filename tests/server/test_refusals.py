"""What a client is refused, it or its operator learns the reason of: in the answer, or in the broker's log."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError as AioTooLargeError
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError

from ottla.cluster.image import ClusterImage, PartitionInfo
from ottla.cluster.outcome import Outcome
from ottla.protocol.errors import ErrorCode
from ottla.records.compression.codec import Codec
from ottla.testing.embedded import EmbeddedBroker
from tests.server.conftest import TOPIC
from tests.server.wire import PRODUCE, Wire, produce, records, wait_until

CAP_BYTES = 100_000
UNPACKS_TO = CAP_BYTES * 10
MIB = 1 << 20


# -- what unpacks to too much


@pytest.fixture(scope="module")
def capped() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"ottla.decompression.max.bytes": CAP_BYTES}) as broker:
        broker.create_topic(TOPIC)
        yield broker


def test_a_batch_that_unpacks_to_too_much_is_too_large_and_the_answer_says_of_what(
    capped: EmbeddedBroker,
) -> None:
    with Wire(capped) as wire:
        request = produce(TOPIC, records(bytes(UNPACKS_TO), codec=Codec.ZSTD))
        (answer,) = wire.ask(PRODUCE, 9, request).responses[0].partition_responses
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert re.search(rf"{CAP_BYTES}.*ottla\.decompression\.max\.bytes", answer.error_message)


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_librdkafka_does_not_send_it_again(capped: EmbeddedBroker, is_idempotent: bool) -> None:
    told: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": capped.bootstrap, "compression.type": "zstd", "message.max.bytes": 2 * MIB,
            "message.timeout.ms": 300_000, "enable.idempotence": is_idempotent,
        }
    )  # fmt: skip
    producer.produce(TOPIC, bytes(UNPACKS_TO), on_delivery=lambda error, _: told.append(error))
    assert producer.flush(60) == 0
    assert told[0] is not None
    assert told[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_kafka_python_does_not_send_it_again_and_says_why(capped: EmbeddedBroker) -> None:
    producer = KafkaProducer(
        bootstrap_servers=capped.bootstrap, compression_type="gzip", max_request_size=2 * MIB
    )
    with pytest.raises(MessageSizeTooLargeError, match=r"ottla\.decompression\.max\.bytes"):
        producer.send(TOPIC, bytes(UNPACKS_TO)).get(60)
    producer.close()


def test_aiokafka_does_not_send_it_again(capped: EmbeddedBroker) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=capped.bootstrap, compression_type="gzip", max_request_size=2 * MIB
        )
        await producer.start()
        try:
            with pytest.raises(AioTooLargeError):
                await producer.send_and_wait(TOPIC, bytes(UNPACKS_TO))
        finally:
            await producer.stop()

    asyncio.run(send())


# -- acks=0


def test_a_connection_that_is_closed_because_of_acks_0_has_its_reason_in_the_log(
    broker: EmbeddedBroker, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = bytearray(records(b"value"))
    damaged[-1] ^= 1
    wire.send(PRODUCE, 9, produce(TOPIC, bytes(damaged), acks=0))
    assert wire.is_closed()
    (line,) = [record.message for record in caplog.records if "acks=0" in record.message]
    for part in (wire.name, "'wire'", "t-0", "CORRUPT_MESSAGE"):
        assert part in line
    with Wire(broker) as other:
        other.send(PRODUCE, 9, produce("nobody-made-this", records(b"value"), acks=0))
        assert other.is_closed()
    assert "nobody-made-this-0: UNKNOWN_TOPIC_OR_PARTITION" in caplog.text


# -- other protocols


def test_tls_on_a_plain_port_is_told_apart_from_a_frame_of_369_million_bytes(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context()
    with Wire(broker) as wire, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(wire.socket, server_hostname="localhost")
    wait_until(lambda: "this looks like TLS; this listener is PLAINTEXT" in caplog.text)
    assert "369" not in caplog.text


def test_http_on_kafkas_port_is_told_what_it_is(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.send_bytes(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert wire.is_closed()
    assert "this looks like HTTP" in caplog.text


# -- acks come first


def test_acks_are_checked_before_the_rule_about_internal_topics(broker: EmbeddedBroker, wire: Wire) -> None:
    broker.create_topic("__consumer_offsets")

    def code(acks: int) -> int:
        request = produce("__consumer_offsets", records(b"value"), acks=acks)
        (answer,) = wire.ask(PRODUCE, 9, request).responses[0].partition_responses
        found: int = answer.error_code
        return found

    assert code(2) == ErrorCode.INVALID_REQUIRED_ACKS
    assert code(1) == ErrorCode.INVALID_TOPIC_EXCEPTION


# -- what waits holds no records


def test_a_request_that_waits_for_replicas_has_let_go_of_its_records() -> None:
    size, count = 12 * MIB, 8
    with EmbeddedBroker({"message.max.bytes": 2 * size}) as broker:
        broker.create_topic(TOPIC)

        def add_a_silent_replica(image: ClusterImage) -> Outcome:
            topic = replace(image.topics[TOPIC], partitions=(PartitionInfo(1, (1, 2), (1, 2)),))
            return Outcome(replace(image, topics={**image.topics, TOPIC: topic}))

        broker._change(add_a_silent_replica)
        data = records(bytes(size))
        before = _own_bytes()
        wires = [Wire(broker) for _ in range(count)]
        try:
            for wire in wires:
                request = produce(TOPIC, data, acks=-1)
                request.timeout_ms = 600_000
                wire.send(PRODUCE, 9, request)
            purgatory = broker.broker.replicas.purgatories.produce
            wait_until(lambda: broker.call(lambda: purgatory.size) == count)
            held = _own_bytes() - before
        finally:
            for wire in wires:
                wire.socket.close()
        assert held < 3 * size, f"{held / MIB:.0f} MiB are held for {count} requests"


def _own_bytes() -> int:
    """Memory of this process that is in no file."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
