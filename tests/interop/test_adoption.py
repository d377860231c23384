"""A Kafka broker takes over directories that ottla wrote, serves them, appends to them, and ottla takes them back."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ottla.runtime import SystemRuntime
from tests.consuming import consume, open_logs
from tests.interop.adopt import adopt_checkpoints, adopt_partition, forget_clean_shutdown
from tests.interop.client import KafkaClient, record
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.ottla_logs import CONFIGS, DEFAULTS, TOPICS, Partition, Writer

TORN = "codec-zstd"
FIRST_KAFKA_EPOCH = 2
LED_ANEW = re.compile(rf"Leader (\S+)-0 with topic id .* starts at leader epoch {FIRST_KAFKA_EPOCH} ")


@dataclass
class Adopted:
    """What ottla wrote, what Kafka said of it, what Kafka added, and what ottla then read."""

    partitions: dict[str, Partition]
    killed: bool
    torn_segment: int = 0
    log_text: str = ""
    read: dict[str, dict[str, Any]] = field(default_factory=dict)
    committed: dict[str, dict[str, Any]] = field(default_factory=dict)
    probes: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    times: dict[str, list[Any]] = field(default_factory=dict)
    later: dict[str, dict[str, Any]] = field(default_factory=dict)
    later_committed: dict[str, dict[str, Any]] = field(default_factory=dict)
    epochs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    reopened: dict[str, dict[str, Any]] = field(default_factory=dict)
    reopened_committed: dict[str, dict[str, Any]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def stopped_broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a stopped broker that knows all the topics."""
    work_dir = tmp_path_factory.mktemp("broker") / "work"
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        for topic, configs in TOPICS.items():
            client.call("create", topic=topic, partitions=1, configs=configs)
        broker.stop()
    # A restart makes the leaders' epoch higher than those that ottla writes.
    with KafkaBroker(NEWEST, work_dir) as broker:
        broker.wait_until(lambda text: set(TOPICS) <= set(LED_ANEW.findall(text)))
        broker.stop()
    return work_dir


@pytest.fixture(scope="module", params=["closed", "killed"])
def adopted(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    stopped_broker: Path,
    rng: random.Random,
) -> Adopted:
    """The whole round trip; the second kind ends with a kill on either side."""
    killed = request.param == "killed"
    source = tmp_path_factory.mktemp("ottla")
    writer = Writer(source, rng)
    found = Adopted(writer.play(), killed)
    if killed:
        writer.die()
    else:
        writer.stop()
    work_dir = tmp_path_factory.mktemp("adopted") / "work"
    shutil.copytree(stopped_broker, work_dir)
    data_dir = work_dir / "data"
    for topic in found.partitions:
        adopt_partition(data_dir, f"{topic}-0", source / f"{topic}-0")
    adopt_checkpoints(data_dir, source)
    if killed:
        found.torn_segment = tear(data_dir / f"{TORN}-0")
        forget_clean_shutdown(data_dir)
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        found.log_text = broker.log_text()
        ask_all(client, found, rng)
        append_to_all(client, list(found.partitions))
        for topic in found.partitions:
            found.later[topic] = client.consume(topic)
            found.later_committed[topic] = client.consume(topic, isolation="read_committed")
        if killed:
            broker.kill()
        else:
            broker.stop()
    reopen(data_dir, found)
    return found


def tear(partition_dir: Path) -> int:
    """Half a batch at the end of the log, as a crash of the machine leaves it."""
    last = max(partition_dir.glob("*.log"))
    data = last.read_bytes()
    size = int.from_bytes(data[8:12], "big") + 12
    last.write_bytes(data + data[: size // 2])
    return int(last.stem)


def ask_all(client: KafkaClient, found: Adopted, rng: random.Random) -> None:
    for topic, partition in found.partitions.items():
        found.read[topic] = client.consume(topic)
        found.committed[topic] = client.consume(topic, isolation="read_committed")
        offsets = [one["offset"] for one in partition.records]
        offsets += [offset + 1 for offset in offsets[:-1]]
        asked = sorted(rng.sample(offsets, min(12, len(offsets))))
        for isolation in ("read_uncommitted", "read_committed"):
            below = [o for o in asked if isolation == "read_uncommitted" or o <= partition.last_stable_offset]
            answers = client.probe(topic, below, isolation=isolation)
            found.probes |= {
                (topic, isolation, offset): answer for offset, answer in zip(below, answers, strict=True)
            }
        stamps = [one["timestamp"] for one in partition.records if one["timestamp"] >= 0]
        asked = rng.sample(stamps, min(8, len(stamps)))
        found.times[topic] = client.times(topic, [0, *asked, *(stamp + 1 for stamp in asked)])


def append_to_all(client: KafkaClient, topics: list[str]) -> None:
    for number, topic in enumerate(topics):
        codec = ("none", "gzip", "snappy", "lz4", "zstd")[number % 5]
        for turn in range(3):
            records = [
                record(b"later-%d" % turn, b"from Kafka %d" % i, None, [("h", None)]) for i in range(5)
            ]
            client.produce(topic, records, {"compression.type": codec})
    for outcome in ("commit", "abort"):
        producer = {"transactional.id": "adopter"}
        client.call("begin", producer=producer)
        client.produce("codec-none", [record(outcome.encode(), b"in a transaction")], producer)
        client.call(outcome, producer=producer)
        client.call("close", producer=producer)
    # A new producer of the same id waits until the last transaction's markers are written.
    client.call("begin", producer={"transactional.id": "adopter"})
    client.call("abort", producer={"transactional.id": "adopter"})


def reopen(data_dir: Path, found: Adopted) -> None:
    runtime = SystemRuntime()
    manager, logs = open_logs(data_dir, runtime, DEFAULTS, CONFIGS)
    for topic in found.partitions:
        log = logs[f"{topic}-0"]
        found.epochs[topic] = log.epochs.entries
        found.reopened[topic] = {
            "start": log.start_offset,
            "end": log.end_offset,
            "records": consume(log),
        }
        found.reopened_committed[topic] = {
            "start": log.start_offset,
            "end": log.last_stable_offset,
            "records": consume(log, committed=True),
        }
    manager.close()
    runtime.close()


def test_kafka_serves_every_record(adopted: Adopted) -> None:
    for topic, partition in adopted.partitions.items():
        read = adopted.read[topic]
        assert (read["start"], read["end"]) == (partition.log.start_offset, partition.log.end_offset)
        assert read["records"] == partition.records


def test_kafka_serves_committed_records_only_to_those_who_ask(adopted: Adopted) -> None:
    for topic, partition in adopted.partitions.items():
        committed = adopted.committed[topic]
        assert committed["end"] == partition.last_stable_offset
        assert committed["records"] == partition.committed


def test_kafka_serves_from_any_offset(adopted: Adopted) -> None:
    for (topic, isolation, offset), answer in adopted.probes.items():
        partition = adopted.partitions[topic]
        records = partition.records if isolation == "read_uncommitted" else partition.committed
        assert answer == next((one for one in records if one["offset"] >= offset), None)


def test_kafka_finds_any_time(adopted: Adopted) -> None:
    for topic, partition in adopted.partitions.items():
        for answer in adopted.times[topic]:
            # Kafka takes the file's age for the time of such a segment, and looks no further.
            if answer[1] is not None or not partition.has_timeless_segment:
                assert answer == partition.first_at(answer[0])


def test_kafka_finds_nothing_to_complain_of_but_the_torn_batch(adopted: Adopted) -> None:
    complaints = [
        line
        for line in adopted.log_text.splitlines()
        if re.search(" (WARN|ERROR) ", line) and any(f"{topic}-0" in line for topic in adopted.partitions)
    ]
    torn = (
        [f"Corruption found in segment {adopted.torn_segment}, truncating to offset"]
        if adopted.killed
        else []
    )
    assert len(complaints) == len(torn)
    for line, text in zip(complaints, torn, strict=True):
        assert f"{TORN}-0" in line
        assert text in line


def test_kafka_recovers_only_what_a_kill_left_unflushed(adopted: Adopted) -> None:
    recovered = {
        topic
        for topic in adopted.partitions
        if re.search(rf"partition={topic}-0, .* Recovering unflushed segment", adopted.log_text)
    }
    assert recovered == (set(adopted.partitions) if adopted.killed else set())


def test_leader_epochs_go_there_and_back(adopted: Adopted) -> None:
    for topic, partition in adopted.partitions.items():
        ours, later = partition.log.epochs.entries, adopted.epochs[topic]
        assert later[: len(ours)] == ours
        # Kafka's own, from where ottla's log ended; a young broker may change it once more while it is written to.
        added = later[len(ours) :]
        assert added[0][1] == partition.log.end_offset
        assert all(epoch >= FIRST_KAFKA_EPOCH for epoch, _ in added)


def test_ottla_reads_all_that_kafka_added(adopted: Adopted) -> None:
    for topic, partition in adopted.partitions.items():
        assert adopted.reopened[topic] == adopted.later[topic]
        assert adopted.reopened_committed[topic] == adopted.later_committed[topic]
        before = len(partition.records)
        records = adopted.reopened[topic]["records"]
        assert records[:before] == partition.records
        assert len(records) == before + (17 if topic == "codec-none" else 15)
