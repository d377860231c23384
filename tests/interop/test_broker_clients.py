"""Real client libraries on `ottla serve`: Kafka's own in Java, franz-go and sarama, all put through the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from tests.interop.client import CallError, Client, KafkaClient, b64, record
from tests.interop.golang import GoClient
from tests.interop.kafka import NEWEST
from tests.interop.serving import OttlaServer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LIBRARIES = ("java", "franz", "sarama")
NODE = 1
START_MS = 1_700_000_000_000
# Java's producer refuses larger records by itself otherwise.
ROOMY = {"max.request.size": str(6 << 20), "buffer.memory": str(48 << 20)}
HEADERS: list[tuple[str, bytes | None]] = [("h", b"v"), ("h", b"v"), ("héader", None), ("empty", b"")]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    # The records are of a time long past.
    with OttlaServer(tmp_path_factory.mktemp("clients") / "data", "--set", "log.retention.ms=-1") as server:
        yield server


@pytest.fixture(scope="module")
def clients(server: OttlaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    logs = tmp_path_factory.mktemp("logs")
    with (
        KafkaClient(NEWEST, server.servers, logs / "java.log") as java,
        GoClient("franz", server.servers, logs / "franz.log") as franz,
        GoClient("sarama", server.servers, logs / "sarama.log") as sarama,
    ):
        yield {"java": java, "franz": franz, "sarama": sarama}


@pytest.fixture(params=LIBRARIES)
def client(request: pytest.FixtureRequest, clients: dict[str, Client]) -> Client:
    return clients[request.param]


@pytest.fixture
def new_topic() -> str:
    return f"topic-{next(_numbers)}"


@pytest.fixture
def topic(client: Client, new_topic: str) -> str:
    client.create(new_topic)
    return new_topic


def random_records(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Keys, values and headers with all that can be null or empty, at rising times."""
    words = [b"castle", b"process", b"", "žluťoučký".encode(), bytes(range(256)), None]
    return [
        record(
            rng.choice([None, b"", b"key-%d" % number]),
            rng.choice([None, b"%d" % number, b" ".join(w or b"" for w in rng.choices(words, k=9))]),
            START_MS + number * 1000,
            rng.choice([[], HEADERS, HEADERS[:1]]),
        )
        for number in range(count)
    ]


def expected(sent: list[dict[str, Any]], first_offset: int = 0) -> list[dict[str, Any]]:
    """What a consumer must get for what was sent."""
    return [
        {"offset": offset, "timestamp_type": "CreateTime", "leader_epoch": 0, **one}
        for offset, one in enumerate(sent, first_offset)
    ]


def as_told(found: list[dict[str, Any]], told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the records `found`, what the library that told of `told` can tell at all."""
    return [{name: one[name] for name in other} for one, other in zip(found, told, strict=True)]


def refused(client: Client, op: str, **arguments: Any) -> int | None:
    """The error code with which the broker refuses a call."""
    with pytest.raises(CallError) as caught:
        client.call(op, **arguments)
    return caught.value.code


def test_a_topic_is_made_widened_and_deleted(client: Client, new_topic: str) -> None:
    client.create(new_topic, partitions=2, retention_ms="1000000")
    assert client.call("topics")["topics"][new_topic] == 2
    assert client.call("configs", topic=new_topic)["configs"]["retention.ms"] == [
        "1000000",
        "DYNAMIC_TOPIC_CONFIG",
    ]
    again = refused(client, "create", topic=new_topic, partitions=1, configs={})
    assert again == ErrorCode.TOPIC_ALREADY_EXISTS
    client.call("widen", topic=new_topic, partitions=4)
    assert client.call("topics")["topics"][new_topic] == 4
    assert refused(client, "widen", topic=new_topic, partitions=3) == ErrorCode.INVALID_PARTITIONS
    client.call("delete", topic=new_topic)
    assert new_topic not in client.call("topics")["topics"]
    assert refused(client, "delete", topic=new_topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_not_made_with_a_bad_setting_or_name(client: Client, new_topic: str) -> None:
    bad = {"cleanup.policy": "burn"}
    assert refused(client, "create", topic=new_topic, partitions=1, configs=bad) == ErrorCode.INVALID_CONFIG
    assert (
        refused(client, "create", topic=new_topic, partitions=0, configs={}) == ErrorCode.INVALID_PARTITIONS
    )
    name_error = refused(client, "create", topic="no/such", partitions=1, configs={})
    assert name_error == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("codec", CODECS)
def test_what_one_library_writes_all_read(
    client: Client, clients: dict[str, Client], topic: str, codec: str, rng: random.Random
) -> None:
    batches = [random_records(rng, rng.randint(1, 40)) for _ in range(4)]
    sent = list(itertools.chain(*batches))
    offsets = [client.produce(topic, batch, {"compression.type": codec}) for batch in batches]
    assert list(itertools.chain(*offsets)) == list(range(len(sent)))
    for reader in clients.values():
        for isolation in ("read_uncommitted", "read_committed"):
            read = reader.consume(topic, isolation=isolation)
            assert (read["start"], read["end"]) == (0, len(sent))
            assert read["records"] == as_told(expected(sent), read["records"])


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_any_size_go_through(
    client: Client, clients: dict[str, Client], new_topic: str, codec: str, rng: random.Random
) -> None:
    client.create(new_topic, max_message_bytes=str(6 << 20))
    values = [rng.randbytes(size) for size in (1, 1000, 100_000, 1 << 20, 5 << 20)]
    for value in values:
        client.produce(new_topic, [record(b"k", value, START_MS)], {**ROOMY, "compression.type": codec})
    for reader in clients.values():
        assert [one["value"] for one in reader.consume(new_topic)["records"]] == list(map(b64, values))


def test_a_record_above_the_limit_is_refused_until_the_limit_is_raised(client: Client, topic: str) -> None:
    large = [record(None, bytes(range(256)) * (2 << 12), START_MS)]
    producer = {**ROOMY, "compression.type": "none"}
    code = refused(client, "produce", topic=topic, partition=0, producer=producer, records=large)
    assert code == ErrorCode.MESSAGE_TOO_LARGE
    client.call("configure", topic=topic, configs={"max.message.bytes": str(4 << 20)})
    assert client.produce(topic, large, {**producer, "client.id": "after"}) == [0]


def test_reading_begins_at_any_offset(client: Client, topic: str, rng: random.Random) -> None:
    sent = random_records(rng, 60)
    for at in range(0, 60, 20):
        client.produce(topic, sent[at : at + 20], {"compression.type": rng.choice(CODECS)})
    asked = [0, 1, 19, 20, 21, 45, 59, 60]
    found = client.probe(topic, asked)
    assert found[-1] is None
    told = [one for one in found if one is not None]
    assert told == as_told([expected(sent)[offset] for offset in asked[:-1]], told)


def test_offsets_are_found_by_time(client: Client, topic: str, rng: random.Random) -> None:
    sent = random_records(rng, 30)
    for at in range(0, 30, 10):
        client.produce(topic, sent[at : at + 10], {"compression.type": rng.choice(CODECS)})
    first, inside, last = START_MS, START_MS + 14_500, START_MS + 29_000
    found = client.times(topic, [0, first, inside, last, last + 1])
    assert [answer[:2] for answer in found] == [
        [0, 0],
        [first, 0],
        [inside, 15],
        [last, 29],
        [last + 1, None],
    ]
    # sarama does not tell the time of what it found.
    assert [answer[2:] for answer in found][2] in ([START_MS + 15_000], [])


def test_the_broker_stamps_the_records_of_a_topic_that_asks_for_it(
    client: Client, clients: dict[str, Client], new_topic: str
) -> None:
    client.create(new_topic, message_timestamp_type="LogAppendTime")
    client.produce(
        new_topic, [record(None, b"%d" % n, START_MS) for n in range(5)], {"compression.type": "lz4"}
    )
    stamps = [one["timestamp"] for one in clients["java"].consume(new_topic)["records"]]
    assert min(stamps) > START_MS
    for reader in clients.values():
        read = reader.consume(new_topic)["records"]
        assert [one["timestamp"] for one in read] == stamps
        assert {one.get("timestamp_type", "LogAppendTime") for one in read} == {"LogAppendTime"}


def test_settings_of_topics_and_brokers_are_changed_and_shown(client: Client, topic: str) -> None:
    client.call("configure", topic=topic, configs={"retention.ms": "86400000", "cleanup.policy": "compact"})
    shown = client.call("configs", topic=topic)["configs"]
    assert shown["retention.ms"] == ["86400000", "DYNAMIC_TOPIC_CONFIG"]
    assert shown["cleanup.policy"] == ["compact", "DYNAMIC_TOPIC_CONFIG"]
    assert shown["segment.bytes"] == [str(1 << 30), "DEFAULT_CONFIG"]
    refusal = refused(client, "configure", topic=topic, configs={"retention.ms": "soon"})
    assert refusal == ErrorCode.INVALID_CONFIG
    # A topic of the policy that was just set takes no records without a key.
    keyless = [record(None, b"no key")]
    refusal = refused(client, "produce", topic=topic, partition=0, producer={}, records=keyless)
    assert refusal == ErrorCode.INVALID_RECORD

    client.call("configure", broker=NODE, configs={"log.segment.delete.delay.ms": "1000"})
    shown = client.call("configs", broker=NODE)["configs"]
    assert shown["log.segment.delete.delay.ms"] == ["1000", "DYNAMIC_BROKER_CONFIG"]


def test_deleted_records_are_gone(client: Client, topic: str, rng: random.Random) -> None:
    sent = random_records(rng, 50)
    client.produce(topic, sent, {"compression.type": "zstd"})
    client.call("delete_records", topic=topic, partition=0, offset=20)
    read = client.consume(topic)
    assert (read["start"], read["end"]) == (20, 50)
    # They lie in one batch with others that stay: it is for the client to leave them out.
    assert read["records"] == as_told(expected(sent)[20:], read["records"])
    beyond = refused(client, "delete_records", topic=topic, partition=0, offset=51)
    assert beyond == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(CallError):
        client.probe(topic, [19])


def test_the_size_of_a_partition_is_that_of_its_file(client: Client, server: OttlaServer, topic: str) -> None:
    client.produce(topic, [record(None, b"x" * 1000)], {})
    (segment,) = (server.data_dir / f"{topic}-0").glob("*.log")
    assert client.call("log_dirs", topic=topic, broker=NODE)["sizes"] == {"0": segment.stat().st_size}


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_idempotent_producer_goes_on_after_a_restart(
    tmp_path: Path, library: str, killed: bool, rng: random.Random
) -> None:
    with (
        OttlaServer(tmp_path / "data", "--set", "log.retention.ms=-1") as server,
        opened(library, server, tmp_path / "log") as client,
    ):
        client.create("t")
        sent: list[dict[str, Any]] = []
        for _ in range(3):
            batch = random_records(rng, 10)
            assert client.produce("t", batch, {"compression.type": "lz4"})[0] == len(sent)
            sent += batch
            if killed:
                server.kill()
            else:
                server.stop()
            server.start()
        read = client.consume("t")
        assert [one["value"] for one in read["records"]] == [one["value"] for one in sent]


def opened(library: str, server: OttlaServer, log_file: Path) -> Client:
    if library == "java":
        return KafkaClient(NEWEST, server.servers, log_file)
    return GoClient(library, server.servers, log_file)
