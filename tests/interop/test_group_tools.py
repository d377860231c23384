"""Kafka's own kafka-consumer-groups on `ottla serve`: list, describe, reset in every way, delete."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.client import KafkaClient, Told, record
from tests.interop.kafka import NEWEST
from tests.interop.serving import OttlaServer
from tests.interop.verifiable import VerifiableConsumer

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
COUNT = 10
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000  # of the first record; the others follow an hour apart each
_numbers = itertools.count()


class Groups:
    """The tool, told where the broker is."""

    def __init__(self, server: OttlaServer, client: KafkaClient) -> None:
        self.server = server
        self.client = client

    def run(self, *arguments: str) -> Told:
        return self.client.run_tool(COMMAND, "--bootstrap-server", self.server.servers, *arguments)

    def rows(self, *arguments: str) -> list[list[str]]:
        """The table it prints, without its head."""
        told = self.run(*arguments)
        assert told.code == 0, told
        lines = [line.split() for line in told.out.splitlines() if line.strip()]
        head = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
        return lines[head + 1 :]

    def offsets(self, group: str) -> dict[int, tuple[str, str, str]]:
        """By partition: what is committed, the end, the lag."""
        rows = self.rows("--describe", "--offsets", "--group", group)
        return {int(row[2]): (row[3], row[4], row[5]) for row in rows}

    def reset(self, group: str, *how: str, execute: bool = True) -> dict[int, str]:
        rows = self.rows("--reset-offsets", "--group", group, *how, "--execute" if execute else "--dry-run")
        return {int(row[2]): row[3] for row in rows}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    work_dir = tmp_path_factory.mktemp("group-tools")
    settings = ("--set", "log.retention.ms=-1", "--set", "group.initial.rebalance.delay.ms=0")
    with (
        OttlaServer(work_dir / "data", *settings) as server,
        KafkaClient(NEWEST, server.servers, work_dir / "client.log") as client,
    ):
        yield Groups(server, client)


@pytest.fixture
def topic(groups: Groups) -> str:
    """Two partitions with ten records each, an hour between two."""
    name = f"topic-{next(_numbers)}"
    groups.client.create(name, 2)
    for partition in range(2):
        records = [record(None, b"v", START_MS + number * HOUR_MS) for number in range(COUNT)]
        groups.client.produce(name, records, {}, partition=partition)
    return name


@pytest.fixture
def group(groups: Groups, topic: str) -> str:
    """A group that has committed offset 4 of both partitions."""
    name = f"group-{topic}"
    assert groups.reset(name, "--topic", topic, "--to-offset", "4") == {0: "4", 1: "4"}
    return name


@pytest.fixture
def member(groups: Groups, topic: str, group: str, tmp_path: Path) -> Iterator[VerifiableConsumer]:
    """A consumer in the group that has everything."""
    log_file = tmp_path / "consumer.log"
    servers = groups.server.servers
    with VerifiableConsumer(servers, group, topic, log_file, group_instance_id="one") as consumer:
        consumer.until(lambda one: len(one.committed) == 2)
        yield consumer


def test_groups_are_listed_by_state_and_type(groups: Groups, group: str, member: VerifiableConsumer) -> None:
    assert group in groups.run("--list").out.split()
    rows = {tuple(row) for row in groups.rows("--list", "--state")}
    assert (group, "Stable") in rows
    assert group not in {row[0] for row in groups.rows("--list", "--state", "empty")}
    assert [group, "Classic"] in groups.rows("--list", "--type")
    assert [group, "Classic"] in groups.rows("--list", "--type", "classic")
    assert group not in groups.run("--list", "--type", "consumer").out.split()


def test_a_group_is_described_with_its_lag(groups: Groups, group: str, topic: str) -> None:
    assert groups.offsets(group) == {0: ("4", "10", "6"), 1: ("4", "10", "6")}
    assert "has no active members" in groups.run("--describe", "--group", group).err
    unknown = groups.run("--describe", "--group", "no-such-group")
    assert "not found" in unknown.out


def test_members_and_state_are_described(
    groups: Groups, group: str, topic: str, member: VerifiableConsumer
) -> None:
    ((_, id_, instance, host, _, count, *_),) = groups.rows("--describe", "--members", "--group", group)
    assert (id_[:4], instance, host, count) == ("one-", "one", "/127.0.0.1", "2")
    (row,) = groups.rows("--describe", "--members", "--verbose", "--group", group)
    assert f"{topic}:0,1" in " ".join(row)
    (state,) = groups.rows("--describe", "--state", "--group", group)
    assert state[-3:] == ["range", "Stable", "1"]
    assert {offset for offset, _, _ in groups.offsets(group).values()} == {"10"}


@pytest.mark.parametrize(
    ("how", "offset"),
    [
        (("--to-earliest",), "0"),
        (("--to-latest",), "10"),
        (("--to-offset", "7"), "7"),
        (("--to-offset", "99"), "10"),
        (("--shift-by", "3"), "7"),
        (("--shift-by", "-3"), "1"),
        (("--shift-by", "-9"), "0"),
        (("--to-current",), "4"),
        (("--to-datetime", "2023-11-15T01:00:00.000"), "3"),
        (("--by-duration", "P1D"), "10"),
    ],
)
def test_offsets_are_reset(groups: Groups, group: str, topic: str, how: tuple[str, ...], offset: str) -> None:
    would = groups.reset(group, "--topic", topic, *how, execute=False)
    assert would == {0: offset, 1: offset}
    assert groups.offsets(group)[0][0] == "4"
    assert groups.reset(group, "--all-topics", *how) == would
    assert {committed for committed, _, _ in groups.offsets(group).values()} == {offset}


def test_offsets_are_exported_and_set_from_a_file(
    groups: Groups, group: str, topic: str, tmp_path: Path
) -> None:
    told = groups.run(
        "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export", "--dry-run"
    )
    exported = [line.replace('"', "") for line in told.out.splitlines() if "," in line]
    assert sorted(exported) == [f"{topic},{number},4" for number in (0, 1)]
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,1\n{topic},1,9\n")
    assert groups.reset(group, "--from-file", str(file)) == {0: "1", 1: "9"}


def test_a_group_with_members_is_left_alone(
    groups: Groups, group: str, topic: str, member: VerifiableConsumer
) -> None:
    told = groups.run("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert re.search("only be reset if the group .* is inactive", told.out)
    told = groups.run("--delete", "--group", group)
    assert "GroupNotEmptyException" in told.out
    told = groups.run("--delete-offsets", "--group", group, "--topic", topic)
    assert "GroupSubscribedToTopicException" in told.out or "actively subscribed" in told.out
    assert member.owned == {(topic, 0), (topic, 1)}


def test_offsets_and_groups_are_deleted(groups: Groups, group: str, topic: str) -> None:
    told = groups.run("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert "Request succeeded for deleting offsets" in told.out
    assert set(groups.offsets(group)) == {1}
    assert "successful" in groups.run("--delete", "--group", group).out
    assert "GroupIdNotFoundException" in groups.run("--delete", "--group", group).out
    assert group not in groups.run("--list").out.split()
