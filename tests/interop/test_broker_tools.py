"""Kafka's own command-line tools on `ottla serve`, run one after the other in one JVM."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.client import KafkaClient, Told, record
from tests.interop.kafka import NEWEST, run_tool
from tests.interop.serving import OttlaServer

CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOOLS = "org.apache.kafka.tools."
TOPICS = "TopicCommand"
NODE = "1"
_numbers = itertools.count()

# What clients cannot do without, in the newest version that Kafka 4.2 has of it.
SERVED = {
    "Produce": 13, "Fetch": 18, "ListOffsets": 11, "Metadata": 13, "ApiVersions": 4, "CreateTopics": 7,
    "DeleteTopics": 6, "DeleteRecords": 2, "InitProducerId": 5, "OffsetForLeaderEpoch": 4, "DescribeConfigs": 4,
    "AlterConfigs": 2, "IncrementalAlterConfigs": 1, "CreatePartitions": 3, "DescribeCluster": 2,
    "DescribeLogDirs": 4, "AlterReplicaLogDirs": 2, "DescribeTopicPartitions": 0, "FindCoordinator": 6,
}  # fmt: skip


class Shell(NamedTuple):
    """The tools, each told where the broker is."""

    server: OttlaServer
    client: KafkaClient

    def run(self, tool: str, *arguments: str, typed: str = "") -> Told:
        main_class = tool if "." in tool else TOOLS + tool
        return self.client.run_tool(
            main_class, *arguments, "--bootstrap-server", self.server.servers, typed=typed
        )

    def ok(self, tool: str, *arguments: str, typed: str = "") -> list[str]:
        """The lines it prints, when all goes well."""
        told = self.run(tool, *arguments, typed=typed)
        assert told.code == 0, told
        return told.out.splitlines()

    def offsets(self, topic: str, *options: str) -> list[str]:
        """What GetOffsetShell says of each partition."""
        lines = self.ok("GetOffsetShell", "--topic", topic, *options)
        return [line.removeprefix(f"{topic}:") for line in lines]

    def consumed(self, topic: str, offset: str, count: int, *options: str) -> list[str]:
        """What the console consumer prints of the first partition."""
        place = ("--topic", topic, "--partition", "0", "--offset", offset, "--max-messages", str(count))
        return self.ok(CONSOLE_CONSUMER, *place, *options)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    work_dir = tmp_path_factory.mktemp("tools")
    dirs = f"log.dirs={work_dir}/data,{work_dir}/second"
    with (
        OttlaServer(work_dir / "data", "--set", dirs) as server,
        KafkaClient(NEWEST, server.servers, work_dir / "client.log") as client,
    ):
        yield Shell(server, client)


@pytest.fixture
def topic(shell: Shell) -> str:
    """A topic with one partition."""
    name = f"topic-{next(_numbers)}"
    shell.client.create(name)
    return name


def test_topics_are_created_described_altered_and_deleted(shell: Shell) -> None:
    name = ("--topic", "orders")
    created = shell.ok(
        TOPICS,
        "--create",
        *name,
        "--partitions",
        "2",
        "--replication-factor",
        "1",
        "--config",
        "segment.ms=60000",
    )
    assert created == ["Created topic orders."]
    assert "orders" in shell.ok(TOPICS, "--list")
    again = shell.run(TOPICS, "--create", *name)
    assert (again.code, "already exists" in again.out) == (1, True)
    assert shell.ok(TOPICS, "--create", *name, "--if-not-exists") == []
    about, *partitions = shell.ok(TOPICS, "--describe", *name)
    assert re.search(
        r"TopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: .*segment.ms=60000", about
    )
    assert [line.split("\t")[2:6] for line in partitions] == [
        [f"Partition: {number}", f"Leader: {NODE}", f"Replicas: {NODE}", f"Isr: {NODE}"] for number in (0, 1)
    ]
    shell.ok(TOPICS, "--alter", *name, "--partitions", "3")
    assert len(shell.ok(TOPICS, "--describe", *name)) == 4
    assert "InvalidPartitionsException" in shell.run(TOPICS, "--alter", *name, "--partitions", "1").err
    shell.ok(TOPICS, "--delete", *name)
    assert "orders" not in shell.ok(TOPICS, "--list")
    assert "does not exist" in shell.run(TOPICS, "--describe", *name).out


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_console_consumer_prints_what_the_console_producer_was_told(
    shell: Shell, topic: str, codec: str
) -> None:
    lines = [f"h:{number},n:x\tkey {number}\tčíslo {number}" for number in range(10)]
    shell.ok(
        *("ConsoleProducer", "--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        typed="\n".join(lines) + "\n",
    )
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
    assert shell.consumed(topic, "earliest", 10, *shown) == lines
    assert shell.consumed(topic, "7", 3, *shown) == lines[7:]
    offsets = ("--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true")
    assert shell.consumed(topic, "9", 1, *offsets) == ["Partition:0\tOffset:9\tčíslo 9"]


def test_the_console_consumer_waits_for_what_is_not_there_yet(shell: Shell, topic: str) -> None:
    told = shell.run(
        *(CONSOLE_CONSUMER, "--topic", topic, "--partition", "0", "--offset", "latest"),
        *("--timeout-ms", "700"),
    )
    assert (told.code, told.out) == (0, "")
    assert "Processed a total of 0 messages" in told.err


def test_producer_performance_sends_all_its_records(shell: Shell, topic: str) -> None:
    lines = shell.ok(
        *("ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "200"),
        *("--throughput", "-1", "--command-property", "compression.type=lz4"),
    )
    assert any(line.startswith("20000 records sent") for line in lines)
    assert shell.offsets(topic) == ["0:20000"]


def test_the_verifiable_producer_has_every_record_acknowledged(shell: Shell, topic: str) -> None:
    # Its last words are spoken when its JVM ends, so it has one of its own.
    told = run_tool(
        *(NEWEST, f"{TOOLS}VerifiableProducer", "--bootstrap-server", shell.server.servers),
        *("--topic", topic, "--max-messages", "100", "--acks", "-1"),
    )
    events = [json.loads(line) for line in told.stdout.splitlines()]
    sent = [(one["value"], one["offset"]) for one in events if one["name"] == "producer_send_success"]
    assert sorted(sent, key=lambda one: one[1]) == [(str(number), number) for number in range(100)]
    (total,) = [one for one in events if one["name"] == "tool_data"]
    assert (total["sent"], total["acked"]) == (100, 100)
    assert shell.consumed(topic, "0", 100) == [str(number) for number in range(100)]


def test_offsets_are_shown_by_end_and_by_time(shell: Shell, topic: str) -> None:
    now_ms = 1_800_000_000_000
    shell.client.call("configure", topic=topic, configs={"message.timestamp.after.max.ms": str(2**62)})
    for batch in range(4):
        records = [record(None, b"x", now_ms + batch * 1000 + number) for number in range(5)]
        shell.client.produce(topic, records, {"compression.type": "gzip"})
    assert shell.offsets(topic, "--time", "earliest") == ["0:0"]
    assert shell.offsets(topic, "--time", "latest") == ["0:20"]
    assert shell.offsets(topic, "--time", "max-timestamp") == ["0:19"]
    assert shell.offsets(topic, "--time", str(now_ms + 2000)) == ["0:10"]
    assert shell.offsets(topic, "--time", str(now_ms + 2001)) == ["0:11"]
    assert shell.offsets(topic, "--time", str(now_ms + 9000)) == []
    # Local logs are all there are.
    assert shell.offsets(topic, "--time", "-4") == ["0:0"]


def test_settings_of_a_topic_are_described_and_altered(shell: Shell, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    assert shell.ok(CONFIGS, "--describe", *entity) == [f"Dynamic configs for topic {topic} are:"]
    changes = "retention.ms=86400000,cleanup.policy=[compact,delete]"
    shell.ok(CONFIGS, "--alter", *entity, "--add-config", changes)
    described = settings(shell.ok(CONFIGS, "--describe", *entity))
    assert described["retention.ms"].startswith("86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")
    assert described["cleanup.policy"].startswith("compact,delete ")
    refused = shell.run(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=soon")
    assert (refused.code, "InvalidConfigurationException" in refused.err) == (1, True)
    shell.ok(CONFIGS, "--alter", *entity, "--delete-config", "cleanup.policy")
    assert list(settings(shell.ok(CONFIGS, "--describe", *entity))) == ["retention.ms"]
    everything = settings(shell.ok(CONFIGS, "--describe", "--all", *entity))
    assert everything["cleanup.policy"] == (
        "delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )


def test_settings_of_brokers_are_described_altered_and_taken_back(shell: Shell, topic: str) -> None:
    one, all_of_them = ("--entity-type", "brokers", "--entity-name", NODE), ("--broker-defaults",)
    shell.ok(CONFIGS, "--alter", *all_of_them, "--add-config", "log.segment.bytes=2000000")
    shell.ok(CONFIGS, "--alter", *one, "--add-config", "log.segment.bytes=3000000")
    described = settings(shell.ok(CONFIGS, "--describe", *one))["log.segment.bytes"]
    assert described == (
        "3000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.segment.bytes=3000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.segment.bytes=2000000, DEFAULT_CONFIG:log.segment.bytes=1073741824}"
    )
    # A topic without a setting of its own follows at once.
    everything = ("--describe", "--all", "--entity-type", "topics", "--entity-name", topic)
    assert settings(shell.ok(CONFIGS, *everything))["segment.bytes"].startswith("3000000 ")
    shell.ok(CONFIGS, "--alter", *one, "--delete-config", "log.segment.bytes")
    assert settings(shell.ok(CONFIGS, *everything))["segment.bytes"].startswith("2000000 ")
    shell.ok(CONFIGS, "--alter", *all_of_them, "--delete-config", "log.segment.bytes")
    assert settings(shell.ok(CONFIGS, *everything))["segment.bytes"].startswith("1073741824 ")
    refused = shell.run(CONFIGS, "--alter", *one, "--add-config", "log.dirs=/elsewhere")
    assert (refused.code, "InvalidRequestException" in refused.err) == (1, True)


def settings(lines: list[str]) -> dict[str, str]:
    """What kafka-configs prints below its heading."""
    return dict(line.strip().split("=", 1) for line in lines[1:])


def test_records_are_deleted_from_a_file_of_offsets(shell: Shell, topic: str, tmp_path: Path) -> None:
    shell.client.call("widen", topic=topic, partitions=2)
    for partition in (0, 1):
        shell.client.produce(topic, [record(None, b"%d" % n) for n in range(10)], {}, partition)
    wanted = [{"topic": topic, "partition": number, "offset": offset} for number, offset in ((0, 4), (1, -1))]
    asked = tmp_path / "offsets.json"
    asked.write_text(json.dumps({"version": 1, "partitions": wanted}))
    told = shell.ok("DeleteRecordsCommand", "--offset-json-file", str(asked))
    assert sorted(told[2:]) == [
        f"partition: {topic}-0\tlow_watermark: 4",
        f"partition: {topic}-1\tlow_watermark: 10",
    ]
    assert shell.offsets(topic, "--time", "earliest") == ["0:4", "1:10"]
    assert shell.consumed(topic, "earliest", 6) == [str(number) for number in range(4, 10)]


def test_log_dirs_tells_where_partitions_lie_and_how_large_they_are(shell: Shell, topic: str) -> None:
    shell.client.produce(topic, [record(None, b"x" * 500)], {})
    dirs = log_dirs(shell, topic)
    assert set(dirs) == {str(shell.server.data_dir), str(shell.server.data_dir.with_name("second"))}
    (path, size) = next((path, sizes[f"{topic}-0"]) for path, sizes in dirs.items() if sizes)
    assert size == Path(path, f"{topic}-0", f"{0:020}.log").stat().st_size > 500


def log_dirs(shell: Shell, topic: str) -> dict[str, dict[str, int]]:
    """Each directory, with the sizes of the topic's partitions in it."""
    *_, line = shell.ok("LogDirsCommand", "--describe", "--broker-list", NODE, "--topic-list", topic)
    (broker,) = json.loads(line)["brokers"]
    assert broker["broker"] == int(NODE)
    return {
        one["logDir"]: {partition["partition"]: partition["size"] for partition in one["partitions"]}
        for one in broker["logDirs"]
        if one["error"] is None
    }


def test_a_partition_moves_to_another_directory_with_all_its_records(shell: Shell, topic: str) -> None:
    for batch in range(20):
        shell.client.produce(topic, [record(None, b"%d" % (batch * 10 + n)) for n in range(10)], {})
    before = shell.client.consume(topic)
    (source,) = [path for path, sizes in log_dirs(shell, topic).items() if sizes]
    (target,) = set(log_dirs(shell, topic)) - {source}
    shell.client.call("move", topic=topic, broker=int(NODE), log_dir=target)
    while (found := log_dirs(shell, topic))[source]:
        assert found.keys() == {source, target}
    assert found[target] == {f"{topic}-0": Path(target, f"{topic}-0", f"{0:020}.log").stat().st_size}
    assert shell.client.consume(topic) == before
    assert shell.client.produce(topic, [record(None, b"after")], {}) == [200]


def test_the_cluster_tells_its_id_and_its_endpoints(shell: Shell) -> None:
    (line,) = shell.ok("ClusterTool", "cluster-id")
    stored = re.search(r"cluster\.id=(\S+)", (shell.server.data_dir / "meta.properties").read_text())
    assert stored is not None
    assert line == f"Cluster ID: {stored[1]}"
    _, endpoint = shell.ok("ClusterTool", "list-endpoints")
    host, port = shell.server.servers.split(":")
    assert endpoint.split()[:3] == [NODE, host, port]


def test_the_api_versions_tool_finds_all_that_clients_need(shell: Shell) -> None:
    text = "\n".join(shell.ok("BrokerApiVersionsCommand"))
    usable = {name: int(version) for name, version in re.findall(r"(\w+)\(\d+\): .*\[usable: (\d+)\]", text)}
    assert {name: usable.get(name) for name in SERVED} == SERVED
