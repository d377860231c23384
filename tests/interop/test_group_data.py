"""Committed offsets on disk: Kafka reads what ottla wrote to `__consumer_offsets`, and ottla what Kafka wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.interop.client import KafkaClient, record
from tests.interop.kafka import NEWEST, KafkaBroker, run_tool
from tests.interop.serving import OttlaServer
from tests.interop.test_group_tools import COMMAND

TOPIC, PARTITIONS, COUNT = "orders", 3, 10
STATIC = "of-kafka-with-members"
WAIT_S = 120.0

Described = dict[tuple[str, int], tuple[str, str]]


class Story(NamedTuple):
    """What the tool says of all groups at each station, and the partition on disk."""

    in_kafka: Described
    in_ottla: Described
    left_ottla: Described
    back_in_kafka: Described
    offsets_dir: Path
    dumped: list[dict[str, Any]]


def describe(client: KafkaClient, servers: str) -> Described:
    """By group and partition: what is committed, and the lag."""
    told = client.run_tool(COMMAND, "--bootstrap-server", servers, "--describe", "--all-groups", "--offsets")
    assert told.code == 0, told
    rows = [line.split() for line in told.out.splitlines() if TOPIC in line]
    return {(row[0], int(row[2])): (row[3], row[5]) for row in rows}


def describe_all(client: KafkaClient, servers: str, groups: int) -> Described:
    """The same of so many groups: a broker that has just started takes them up a little later."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = describe(client, servers)
        if len(found) >= groups * PARTITIONS or time.monotonic() > deadline:
            return found


def commit(servers: str, group: str, offsets: list[int], metadata: str = "") -> None:
    """As a member of the group, or without one where nobody is."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    places = [TopicPartition(TOPIC, number, offset, metadata) for number, offset in enumerate(offsets)]
    for place in consumer.commit(offsets=places, asynchronous=False) or ():
        assert place.error is None
    consumer.close()


def join_and_commit(servers: str, group: str) -> None:
    """Read everything as a member, commit, and leave."""
    config = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = Consumer({**config, "enable.auto.commit": False, "group.instance.id": "one"})
    consumer.subscribe([TOPIC])
    read = 0
    while read < PARTITIONS * COUNT:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None, message.error()
        read += 1
    consumer.commit(asynchronous=False)
    consumer.close()


def ottla(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture(scope="module", params=["stopped", "killed"])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    work_dir = tmp_path_factory.mktemp("group-data") / "work"
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        client.create(TOPIC, PARTITIONS)
        for partition in range(PARTITIONS):
            client.produce(TOPIC, [record(None, b"v") for _ in range(COUNT)], {}, partition=partition)
        commit(broker.servers, "of-kafka", [1, 2, 3], "from Kafka")
        join_and_commit(broker.servers, STATIC)
        in_kafka = describe_all(client, broker.servers, 2)
        broker.stop()
    data_dir = broker.data_dir
    ottla("adopt", data_dir)
    settings = ("--set", "group.initial.rebalance.delay.ms=0")
    with OttlaServer(data_dir, *settings) as server:
        with KafkaClient(NEWEST, server.servers, work_dir / "ottla-client.log") as client:
            in_ottla = describe_all(client, server.servers, 2)
            commit(server.servers, "of-kafka", [4, 5], "from ottla")
            commit(server.servers, "of-ottla", [7, 8, 9], "ümlaut")
            join_and_commit(server.servers, "of-ottla-with-members")
            left_ottla = describe_all(client, server.servers, 4)
        if request.param == "killed":
            server.kill()
    offsets_dir = data_dir / "__consumer_offsets-0"
    dumped = [
        json.loads(line) for line in ottla("log", "dump", offsets_dir, "--records", "--json").splitlines()
    ]
    ottla("release", data_dir)
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        back = describe_all(client, broker.servers, 4)
        broker.stop()
    return Story(in_kafka, in_ottla, left_ottla, back, offsets_dir, dumped)


def test_ottla_finds_the_offsets_that_kafka_kept(story: Story) -> None:
    assert story.in_kafka[STATIC, 0] == (str(COUNT), "0")
    assert story.in_kafka["of-kafka", 1] == ("2", "8")
    assert story.in_ottla == story.in_kafka


def test_kafka_finds_the_offsets_that_ottla_kept(story: Story) -> None:
    assert story.left_ottla["of-kafka", 0] == ("4", "6")
    assert story.left_ottla["of-kafka", 2] == ("3", "7")
    assert story.left_ottla["of-ottla", 2] == ("9", "1")
    assert story.left_ottla["of-ottla-with-members", 1] == (str(COUNT), "0")
    assert story.back_in_kafka == story.left_ottla


def test_both_tools_print_the_same_commits(story: Story) -> None:
    """`ottla log dump` and Kafka's DumpLogSegments read each record of the partition."""
    files = sorted(story.offsets_dir.glob("*.log"))
    names = ",".join(map(str, files))
    text = run_tool(NEWEST, "kafka.tools.DumpLogSegments", "--files", names, "--offsets-decoder").stdout
    by_kafka = []
    for key, value in re.findall(r'key: (\{"type":"1".*\}) payload: (\{.*\})$', text, re.MULTILINE):
        place, said = json.loads(key)["data"], json.loads(value)["data"]
        by_kafka.append((place["group"], place["partition"], said["offset"], said["metadata"]))
    by_ottla = [
        (row["key"]["group"], row["key"]["partition"], row["value"]["offset"], row["value"]["metadata"])
        for row in story.dumped
        if row["key"]["type"] == "offset_commit"
    ]
    # Kafka may have written more when it had the partition back.
    assert by_kafka[: len(by_ottla)] == by_ottla
    groups = {"of-kafka", "of-ottla", STATIC, "of-ottla-with-members"}
    assert {group for group, *_ in by_ottla} == groups
    assert ("of-ottla", 0, 7) in {commit[:3] for commit in by_ottla}
