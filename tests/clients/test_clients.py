"""Real clients do their daily work against the broker. One list of behaviours, three clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from ottla.testing.embedded import EmbeddedBroker
from tests.clients.aio import AioClient
from tests.clients.client import Client, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.kafka_python import KafkaPythonClient

CLIENTS: dict[str, Callable[[str], Client]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AioClient,
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC = "orders"
MIB = 1 << 20
# LogAppendTime is not set: timestamps are the producers', and may lie in the past.
OLD_MS = 1_700_000_000_000


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, ottla_broker: EmbeddedBroker) -> Iterator[Client]:
    client = CLIENTS[request.param](ottla_broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(client: Client) -> str:
    client.create_topic(TOPIC, config={"max.message.bytes": str(8 * MIB)})
    return TOPIC


def test_topics_are_made_seen_and_deleted(client: Client, ottla_broker: EmbeddedBroker) -> None:
    client.create_topic("one")
    client.create_topic("two", partitions=3, config={"retention.ms": "1000"})
    assert client.topics() == {"one", "two"}
    assert len(ottla_broker.broker.metadata.image.topics["two"].partitions) == 3
    client.delete_topic("one")
    assert client.topics() == {"two"}


def test_a_topic_that_is_there_is_not_made_again(client: Client, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)exists"):
        client.create_topic(topic)


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(client: Client, topic: str, codec: str) -> None:
    sent = [
        Sent(b"value", b"key", (("trace", b"1"), ("trace", b"2")), OLD_MS),
        Sent(b"value", None),
        Sent(None, b"deleted"),
        Sent(b"", b"", (("empty", b""),)),
        Sent(b"", b"key", (("null", None),) if client.sends_null_headers else ()),
        Sent("schön".encode(), b"\xff\x00", (("ünicode", b"\x00\xff"),)),
        *(Sent(b"many %d" % number, b"%d" % (number % 7)) for number in range(500)),
    ]
    assert client.produce(topic, sent, codec=codec) == list(range(len(sent)))
    read = client.consume(topic, 0, len(sent))
    assert [(r.value, r.key, r.headers) for r in read] == [(s.value, s.key, s.headers) for s in sent]
    assert [r.offset for r in read] == list(range(len(sent)))
    assert read[0].timestamp_ms == OLD_MS
    assert abs(read[1].timestamp_ms - time.time() * 1000) < 60_000


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_one_byte_to_five_mebibytes(client: Client, topic: str, codec: str) -> None:
    random = Random(7)
    sizes = (1, 100, 1024, 100_000, MIB, 5 * MIB, 3)
    sent = [Sent(random.randbytes(size // 2) + bytes(size - size // 2)) for size in sizes]
    offsets = client.produce(topic, sent, codec=codec)
    assert offsets == list(range(len(sizes)))
    assert [r.value for r in client.consume(topic, 0, len(sizes))] == [s.value for s in sent]


def test_a_record_that_is_too_large_is_refused_and_the_next_one_is_not(client: Client) -> None:
    client.create_topic("small", config={"max.message.bytes": "10000"})
    with pytest.raises(Exception, match=r"(?i)large"):
        client.produce("small", [Sent(bytes(20_000))])
    assert client.produce("small", [Sent(bytes(2_000))]) == [0]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_an_idempotent_producer_writes_each_record_once_although_answers_are_lost(
    client: Client, topic: str, codec: str, ottla_broker: EmbeddedBroker
) -> None:
    ottla_broker.faults.drop("Produce", count=2, handled=True)
    sent = [Sent(b"%d" % number) for number in range(200)]
    offsets = client.produce(topic, sent, codec=codec, idempotent=True)
    assert ottla_broker.faults.pending == 0, "answers were lost"
    assert offsets == list(range(200))
    assert client.bounds(topic) == (0, 200)
    assert [r.value for r in client.consume(topic, 0, 200)] == [s.value for s in sent]


def test_a_consumer_starts_at_any_offset(client: Client, topic: str) -> None:
    client.produce(topic, [Sent(b"%d" % number) for number in range(1000)], codec="gzip")
    for offset in (0, 1, 499, 998, 999):
        (read,) = client.consume(topic, offset, 1)
        assert (read.offset, read.value) == (offset, b"%d" % offset)


def test_a_consumer_finds_an_offset_by_time(client: Client, topic: str) -> None:
    for first in (0, 10, 20):  # three batches
        times = range(first, first + 10)
        client.produce(topic, [Sent(b"x", timestamp_ms=OLD_MS + 1000 * number) for number in times])
    assert client.offset_at(topic, OLD_MS - 5) == 0
    assert client.offset_at(topic, OLD_MS) == 0
    assert client.offset_at(topic, OLD_MS + 1) == 1
    assert client.offset_at(topic, OLD_MS + 15_000) == 15
    assert client.offset_at(topic, OLD_MS + 29_000) == 29
    assert client.offset_at(topic, OLD_MS + 29_001) is None


def test_an_offset_that_is_not_there_is_an_error(client: Client, topic: str) -> None:
    client.produce(topic, [Sent(b"only")])
    with pytest.raises(Exception, match=r"(?i)out ?of ?range"):
        client.consume(topic, 500, 1)


def test_a_setting_of_a_topic_is_changed_and_takes_effect(client: Client, topic: str) -> None:
    assert client.config(topic, "retention.ms") == "604800000"
    client.set_config(topic, "retention.ms", "86400000")
    assert client.config(topic, "retention.ms") == "86400000"
    client.set_config(topic, "max.message.bytes", "10000")
    with pytest.raises(Exception, match=r"(?i)large"):
        client.produce(topic, [Sent(bytes(20_000))])


def test_a_setting_that_makes_no_sense_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)invalid|config"):
        client.set_config(topic, "retention.ms", "often")
    assert client.config(topic, "retention.ms") == "604800000"


def test_records_are_deleted_from_the_beginning(client: Client, topic: str) -> None:
    client.produce(topic, [Sent(b"%d" % number) for number in range(100)])
    client.delete_records(topic, 40)
    assert client.bounds(topic) == (40, 100)
    assert client.consume(topic, 40, 1)[0].value == b"40"
    with pytest.raises(Exception, match=r"(?i)out ?of ?range"):
        client.consume(topic, 39, 1)


def test_everything_is_there_after_a_restart_and_after_a_kill(
    client: Client, topic: str, ottla_broker: EmbeddedBroker
) -> None:
    client.produce(topic, [Sent(b"before")], idempotent=True)
    client.set_config(topic, "retention.ms", "86400000")
    ottla_broker.restart()
    client.produce(topic, [Sent(b"between")], idempotent=True)
    ottla_broker.kill()
    ottla_broker.start()
    client.produce(topic, [Sent(b"after")], idempotent=True)
    assert [r.value for r in client.consume(topic, 0, 3)] == [b"before", b"between", b"after"]
    assert client.config(topic, "retention.ms") == "86400000"


def test_a_topic_is_made_by_the_first_record_where_that_is_allowed(client: Client) -> None:
    assert client.produce("new", [Sent(b"first")]) == [0]
    assert client.topics() == {"new"}
