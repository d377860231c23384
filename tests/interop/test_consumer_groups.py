"""Consumer groups of the newer protocol with Kafka's own clients and tools, and between Kafka and ottla."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.members import await_coordinator
from tests.conversation.modern_members import Modern, has
from tests.conversation.talk import Talk
from tests.interop.client import JVM_OPTIONS, KafkaClient, record
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.maven import class_path
from tests.interop.serving import OttlaServer

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
QUICK = (
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=10000",
)
SETTLE_TIMEOUT_S = 240.0
_numbers = itertools.count()


class Shell:
    """The tools and a broker."""

    def __init__(self, server: OttlaServer, client: KafkaClient) -> None:
        self.server = server
        self.client = client

    def ok(self, tool: str, *arguments: str) -> list[str]:
        told = self.client.run_tool(tool, *arguments, "--bootstrap-server", self.server.servers)
        assert told.code == 0, told
        return told.out.splitlines()

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """A table that kafka-consumer-groups prints, without its empty lines."""
        lines = [line.split() for line in self.ok(GROUPS, *arguments) if line.strip()]
        return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]] if lines else []

    def groups(self, kind: str) -> set[str]:
        return {row["GROUP"] for row in self.rows("--list", "--type", kind)}

    def until(self, is_so: Callable[[list[dict[str, str]]], bool], *arguments: str) -> list[dict[str, str]]:
        """Ask again until the table is as it should be."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while not is_so(rows := self.rows(*arguments)):
            assert time.monotonic() < deadline, rows
        return rows

    @contextmanager
    def consumer(self, topic: str, group: str, protocol: str = "consumer") -> Iterator[None]:
        """A console consumer in a JVM of its own."""
        command = [
            "java",
            *JVM_OPTIONS,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            class_path(NEWEST),
            CONSOLE_CONSUMER,
            "--topic",
            topic,
        ]
        options = ["--group", group, "--command-property", f"group.protocol={protocol}"]
        servers = ["--bootstrap-server", self.server.servers]
        process = subprocess.Popen([*command, *options, *servers], stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(SETTLE_TIMEOUT_S)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    work_dir = tmp_path_factory.mktemp("consumer-groups")
    settings = itertools.chain.from_iterable(("--set", setting) for setting in QUICK)
    with (
        OttlaServer(work_dir / "data", *settings) as server,
        KafkaClient(NEWEST, server.servers, work_dir / "client.log") as client,
    ):
        yield Shell(server, client)


@pytest.fixture
def topic(shell: Shell) -> str:
    """A topic with four partitions, and as the name of a group."""
    name = f"orders-{next(_numbers)}"
    shell.client.create(name, partitions=4)
    return name


def test_javas_consumer_reads_and_commits_in_a_group(shell: Shell, topic: str) -> None:
    shell.client.produce(topic, [record(None, f"{number}".encode()) for number in range(10)], {})
    options = ("--group", topic, "--command-property", "group.protocol=consumer", "--max-messages")
    read = shell.ok(CONSOLE_CONSUMER, "--topic", topic, "--from-beginning", *options, "10")
    assert sorted(read) == sorted(f"{number}" for number in range(10))
    rows = shell.rows("--describe", "--group", topic)
    assert sum(int(row["CURRENT-OFFSET"]) for row in rows if row["CURRENT-OFFSET"] != "-") == 10
    assert {row["LAG"] for row in rows} <= {"0", "-"}
    assert [row["STATE"] for row in shell.rows("--describe", "--state", "--group", topic)] == ["Empty"]
    assert topic in shell.groups("consumer")
    assert topic not in shell.groups("classic")


def test_javas_consumers_share_the_partitions(shell: Shell, topic: str) -> None:
    members = ("--describe", "--members", "--group", topic)
    with shell.consumer(topic, topic):
        shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["4"], *members)
        with shell.consumer(topic, topic):
            shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["2", "2"], *members)
            (state,) = shell.until(
                lambda rows: [row["STATE"] for row in rows] == ["Stable"],
                "--describe",
                "--state",
                "--group",
                topic,
            )
            assert "uniform" in state.values()
            described = shell.ok(GROUPS, *members, "--verbose")
            assert "CURRENT-EPOCH" in described[1] or "CURRENT-EPOCH" in described[0], described
        shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["4"], *members)
    shell.until(lambda rows: not rows, *members)
    shell.ok(GROUPS, "--delete", "--group", topic)


def test_javas_classic_consumer_shares_a_group_with_one_of_the_newer_protocol(
    shell: Shell, topic: str
) -> None:
    members = ("--describe", "--members", "--group", topic)
    with shell.consumer(topic, topic, "classic"):
        shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["4"], *members)
        assert topic in shell.groups("classic")
        with shell.consumer(topic, topic):
            shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["2", "2"], *members)
            assert topic in shell.groups("consumer")
        shell.until(lambda rows: [row["#PARTITIONS"] for row in rows] == ["4"], *members)
        assert topic in shell.groups("classic")


def ottla(*arguments: object) -> str:
    command = [sys.executable, "-m", "ottla", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def talking(servers: str) -> Iterator[Talk]:
    host, _, port = servers.rpartition(":")
    talk = Talk(host, int(port))
    try:
        yield talk
    finally:
        talk.close()


def beat(member: Modern, talk: Talk, request: Any) -> Any:
    """A heartbeat that must succeed; while the broker reads its groups it is sent again."""
    response = talk.until(1, request, lambda answer: answer.error_code not in (14, 15, 16))
    assert response.error_code == 0, response
    member.epoch = response.member_epoch
    return response


def test_a_group_goes_from_kafka_to_ottla_and_back_without_anybody_joining_again(tmp_path: Path) -> None:
    broker = KafkaBroker(NEWEST, tmp_path / "work")
    with broker, talking(broker.servers) as talk:
        await_coordinator(talk)
        topic_id = talk.topic("orders", 4)
        talk.settle()  # its coordinator hears of topics last
        one = Modern(talk, "g", "one")
        joined = beat(one, talk, one.joining("orders"))
        assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    ottla("adopt", broker.data_dir)
    with OttlaServer(broker.data_dir) as server, talking(server.servers) as talk:
        beat(one, talk, one.beating())
        assert one.epoch == 1
        two = Modern(talk, "g", "two", instance="i")
        beat(two, talk, two.joining("orders"))
        beat(one, talk, one.beating(topic_partitions=has(topic_id, 0, 1, 2, 3)))
        beat(one, talk, one.beating(topic_partitions=has(topic_id, 0, 1)))
        given = beat(two, talk, two.beating())
        assert given.assignment.topic_partitions[0].partitions == [2, 3]
        assert one.epoch == two.epoch == 2
    ottla("release", broker.data_dir)
    with broker, talking(broker.servers) as talk:
        for member, numbers in ((one, (0, 1)), (two, (2, 3))):
            answer = beat(member, talk, member.beating(topic_partitions=has(topic_id, *numbers)))
            assert (answer.member_epoch, answer.assignment) == (2, None)
        beat(one, talk, one.beating(member_epoch=-1))
        everything = beat(two, talk, two.beating())
        assert everything.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
