"""Kafka's own transactional producers and its tool for transactions on `ottla serve`."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.builder import build_batch
from tests.conversation.talk import Talk
from tests.interop.client import CallError, KafkaClient, record
from tests.interop.kafka import NEWEST
from tests.interop.serving import OttlaServer

TOOL = "org.apache.kafka.tools.TransactionsCommand"
HOUR_MS = 3_600_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    """Without verification: so that a transaction can be left behind that its coordinator knows nothing of."""
    settings = ("transaction.partition.verification.enable=false", "auto.create.topics.enable=false")
    options = [word for setting in settings for word in ("--set", setting)]
    with OttlaServer(tmp_path_factory.mktemp("transactions") / "data", *options) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: OttlaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClient]:
    log_file = tmp_path_factory.mktemp("client") / "client.log"
    with KafkaClient(NEWEST, server.servers, log_file) as client:
        yield client


@pytest.fixture
def topic(client: KafkaClient) -> str:
    name = f"topic-{next(_numbers)}"
    client.create(name, 2)
    return name


@pytest.fixture
def producer() -> dict[str, str]:
    return {"transactional.id": f"id-{next(_numbers)}"}


def values(client: KafkaClient, topic: str, partition: int = 0) -> list[str]:
    found = client.consume(topic, partition, "read_committed")["records"]
    return [base64.b64decode(entry["value"]).decode() for entry in found]


def send(client: KafkaClient, topic: str, producer: dict[str, str], *texts: str, partition: int = 0) -> None:
    client.produce(topic, [record(None, text.encode()) for text in texts], producer, partition)


def test_what_a_java_producer_commits_is_read_and_what_it_aborts_is_not(
    client: KafkaClient, topic: str, producer: dict[str, str]
) -> None:
    for number in range(4):
        client.call("begin", producer=producer)
        for partition in range(2):
            send(client, topic, producer, f"{number}a", f"{number}b", partition=partition)
        client.call("abort" if number % 2 else "commit", producer=producer)
    for partition in range(2):
        assert values(client, topic, partition) == ["0a", "0b", "2a", "2b"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_offsets_of_a_java_producer_count_if_its_transaction_does(
    client: KafkaClient, topic: str, producer: dict[str, str], end: str
) -> None:
    group = producer["transactional.id"]
    client.call("begin", producer=producer)
    client.call("send_offset", producer=producer, topic=topic, offset=7, group=group)
    client.call(end, producer=producer)
    told = client.run_tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", client.servers, "--describe", "--offsets", "--group", group),
    )
    assert (" 7 " in told.out) == (end == "commit"), told


def test_a_java_producer_that_is_replaced_is_fenced(
    server: OttlaServer, client: KafkaClient, topic: str, producer: dict[str, str], tmp_path: Path
) -> None:
    client.call("begin", producer=producer)
    send(client, topic, producer, "old")
    with KafkaClient(NEWEST, server.servers, tmp_path / "client.log") as other:
        other.call("begin", producer=producer)
        send(other, topic, producer, "new")
        with pytest.raises(CallError, match=r"(?i)fenced|newer"):
            client.call("commit", producer=producer)
        other.call("commit", producer=producer)
    assert values(client, topic) == ["new"]


def test_a_java_producer_goes_on_when_the_broker_was_killed(tmp_path: Path, producer: dict[str, str]) -> None:
    with (
        OttlaServer(tmp_path / "data") as server,
        KafkaClient(NEWEST, server.servers, tmp_path / "client.log") as client,
    ):
        client.create("t", 2)
        for number in range(3):
            client.call("begin", producer=producer)
            send(client, "t", producer, f"{number}")
            server.kill()
            server.start()
            client.call("commit", producer=producer)
        assert values(client, "t") == ["0", "1", "2"]


# -- kafka-transactions


class Transactions:
    """The tool."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def __call__(self, *arguments: str) -> list[list[str]]:
        """The rows of the table that it prints, without the titles."""
        told = self._client.run_tool(TOOL, "--bootstrap-server", self._client.servers, *arguments)
        assert told.code == 0, told
        return [line.split() for line in told.out.splitlines()[1:]]


@pytest.fixture
def transactions(client: KafkaClient) -> Transactions:
    return Transactions(client)


def test_the_tool_lists_and_describes_what_is_open(
    client: KafkaClient, topic: str, producer: dict[str, str], transactions: Transactions
) -> None:
    name = producer["transactional.id"]
    client.call("begin", producer=producer)
    send(client, topic, producer, "x")
    listed = {row[0]: row[1:] for row in transactions("list")}
    node, producer_id, state = listed[name]
    assert (node, state) == ("1", "Ongoing")
    assert [
        row[0] for row in transactions("list", "--transactional-id-pattern", f"(?i){name.upper()}|x")
    ] == [name]
    assert transactions("list", "--transactional-id-pattern", f"{name}.+") == []
    (described,) = transactions("describe", "--transactional-id", name)
    assert described[:6] == ["1", name, producer_id, described[3], "Ongoing", "60000"]
    assert described[-1] == f"{topic}-0"
    (found,) = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert (found[0], found[3], found[-1]) == (producer_id, "0", "0")  # its last sequence, its first offset
    client.call("commit", producer=producer)
    assert {row[0]: row[3] for row in transactions("list")}[name] == "CompleteCommit"
    (found,) = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert found[-1] == "None"


def leave_behind(server: OttlaServer, topic: str, producer_id: int) -> None:
    """Records of a transaction that no coordinator has heard of, an hour old."""
    old_ms = int(time.time() * 1000) - HOUR_MS
    data = build_batch(
        [(old_ms, None, b"left behind", ())],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    entry = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=0, records=memoryview(bytes(data)))]
    )
    host, _, port = server.servers.rpartition(":")
    talk = Talk(host, int(port))
    request = ProduceRequest(transactional_id="nobody", acks=-1, timeout_ms=1000, topic_data=[entry])
    answer: Any = talk.request(11, request)
    talk.close()
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_the_tool_finds_a_transaction_that_hangs_and_aborts_it(
    server: OttlaServer, client: KafkaClient, topic: str, transactions: Transactions
) -> None:
    leave_behind(server, topic, 987_654)
    client.produce(topic, [record(None, b"after")], {"acks": "all"})
    assert client.consume(topic, 0, "read_committed")["end"] == 0
    (found,) = [row for row in transactions("find-hanging", "--broker-id", "1") if row[0] == topic]
    assert found[1:3] == ["0", "987654"]
    assert transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0") == []
    assert values(client, topic) == ["after"]
    assert not [row for row in transactions("find-hanging", "--broker-id", "1") if row[0] == topic]
