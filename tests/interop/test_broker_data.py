"""Real clients write through `ottla serve` into a directory of Kafka's, and Kafka and its tool read the same there.

Kafka makes the topics; ottla adopts the directory, serves it to clients of three libraries and gives it back.
"""

from __future__ import annotations

import itertools
import random
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.dumping import printed, scanned
from tests.interop.client import Client, record
from tests.interop.dump import Dump, dump_log_segments, dump_records, told, told_of
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.libraries import (
    CODECS,
    LIBRARIES,
    START_MS,
    expected,
    open_client,
    random_records,
)
from tests.interop.serving import OttlaServer

SMALL = {"internal.segment.bytes": "30000", "index.interval.bytes": "600"}
TOPICS = {
    **{f"{library}-{codec}": SMALL for library in LIBRARIES for codec in CODECS},
    "shared": SMALL,
    "stamped": {**SMALL, "message.timestamp.type": "LogAppendTime"},
    "recompressed": {**SMALL, "compression.type": "zstd"},
    "trimmed": {**SMALL, "file.delete.delay.ms": "0"},
    "large": {"max.message.bytes": str(6 << 20)},
    "empty": SMALL,
}
ROOMY = {"max.request.size": str(6 << 20), "buffer.memory": str(48 << 20)}
TRIMMED_TO = 100
BATCHES = 8


@dataclass
class Written:
    """What was sent, and what everybody says of it."""

    data_dir: Path
    killed: bool
    sent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    served: dict[str, dict[str, Any]] = field(default_factory=dict)  # by ottla, to Java's client
    times: dict[str, list[Any]] = field(default_factory=dict)
    logs: Dump = field(default_factory=lambda: Dump({}, []))
    indexes: Dump = field(default_factory=lambda: Dump({}, []))
    batches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # as ottla reads each file
    kafka_log: str = ""
    kafka_served: dict[str, dict[str, Any]] = field(default_factory=dict)
    kafka_times: dict[str, list[Any]] = field(default_factory=dict)

    def send(
        self, client: Client, topic: str, records: list[dict[str, Any]], producer: dict[str, str]
    ) -> None:
        before = self.sent.setdefault(topic, [])
        offsets = client.produce(topic, records, producer)
        assert offsets == list(range(len(before), len(before) + len(records)))
        before += records

    def files(self, topic: str) -> list[Path]:
        return sorted((self.data_dir / f"{topic}-0").glob("*.log"))


@pytest.fixture(scope="module")
def stopped_kafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a stopped broker that has all the topics."""
    work_dir = tmp_path_factory.mktemp("kafka") / "work"
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        for topic, configs in TOPICS.items():
            client.call("create", topic=topic, partitions=1, configs=configs)
        broker.stop()
    return work_dir


@pytest.fixture(scope="module", params=["stopped", "killed"])
def written(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    stopped_kafka: Path,
    rng: random.Random,
) -> Written:
    work_dir = tmp_path_factory.mktemp("written") / "work"
    shutil.copytree(stopped_kafka, work_dir)
    found = Written(work_dir / "data", killed=request.param == "killed")
    ottla("adopt", found.data_dir)
    often = "log.flush.start.offset.checkpoint.interval.ms=100"  # a kill between two takes deletions back, as in Kafka
    settings = ("--set", "log.retention.ms=-1", "--set", often)
    with OttlaServer(found.data_dir, *settings) as server, ExitStack() as stack:
        clients = {
            library: stack.enter_context(open_client(library, server.servers, work_dir / f"{library}.log"))
            for library in LIBRARIES
        }
        write(found, clients, rng)
        ask(clients["java"], found.served, found.times)
        if found.killed:
            wait_for_log_start(found.data_dir)
            server.kill()
    look_into(found)
    ottla("release", found.data_dir)
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        found.kafka_log = broker.log_text()
        ask(client, found.kafka_served, found.kafka_times)
    return found


def wait_for_log_start(data_dir: Path) -> None:
    """Until the deletion of records is written down."""
    checkpoint = data_dir / "log-start-offset-checkpoint"
    deadline = time.monotonic() + 240
    while f"trimmed 0 {TRIMMED_TO}\n" not in checkpoint.read_text():
        assert time.monotonic() < deadline, checkpoint.read_text()
        time.sleep(0.05)


def ottla(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "ottla", *map(str, arguments)], check=True, capture_output=True)


def write(found: Written, clients: dict[str, Client], rng: random.Random) -> None:
    for _, (library, client), codec in itertools.product(range(BATCHES), clients.items(), CODECS):
        producer = {"compression.type": codec}
        records = random_records(rng, rng.randint(1, 12))
        found.send(client, f"{library}-{codec}", records, producer)
        for topic in ("shared", "stamped", "recompressed", "trimmed"):
            found.send(client, topic, random_records(rng, rng.randint(1, 5)), producer)
    for client, codec in itertools.product(clients.values(), CODECS):
        value = b"".join(rng.choices([b"castle", b"process", b"\0"], k=400_000))
        found.send(client, "large", [record(b"k", value, START_MS)], {**ROOMY, "compression.type": codec})
    clients["java"].call("delete_records", topic="trimmed", partition=0, offset=TRIMMED_TO)
    found.sent["empty"] = []


def ask(client: Client, served: dict[str, dict[str, Any]], times: dict[str, list[Any]]) -> None:
    for topic in TOPICS:
        served[topic] = client.consume(topic)
        stamps = [0, *(START_MS + 700 * number for number in range(0, 40, 4)), START_MS + 10**9]
        times[topic] = client.times(topic, stamps)


def look_into(found: Written) -> None:
    """Before Kafka changes anything: what its tool says of ottla's files, and ottla itself."""
    found.logs = dump_records([path for topic in TOPICS for path in found.files(topic)])
    indexes = [
        path.with_suffix(suffix)
        for topic in TOPICS
        for path in found.files(topic)
        for suffix in (".index", ".timeindex")
        # Those of the last segment are as long as they may become, until a clean stop.
        if not (found.killed and path == found.files(topic)[-1])
    ]
    found.indexes = dump_log_segments(indexes)
    found.batches = {
        str(path): [printed(row) for row in scanned(path)] for topic in TOPICS for path in found.files(topic)
    }


def test_ottla_serves_what_was_sent(written: Written) -> None:
    for topic, sent in written.sent.items():
        start = TRIMMED_TO if topic == "trimmed" else 0
        served = written.served[topic]
        assert (served["start"], served["end"]) == (start, len(sent))
        wanted = expected(sent[start:], start)
        if topic == "stamped":
            for one, other in zip(wanted, served["records"], strict=True):
                one |= {"timestamp": other["timestamp"], "timestamp_type": "LogAppendTime"}
        # Kafka led in epoch 0, and was stopped cleanly: ottla goes on in it.
        assert served["records"] == wanted


def test_kafkas_tool_prints_every_record_that_ottla_served(written: Written) -> None:
    assert written.logs.problems == []
    for topic, served in written.served.items():
        dumped = [told(one) for path in written.files(topic) for one in written.logs.files[str(path)].records]
        kept = [one for one in dumped if one["offset"] >= served["start"]]
        assert kept == [told_of(one) for one in served["records"]]


def test_kafkas_tool_prints_every_batch_as_ottla_reads_it(written: Written) -> None:
    for path, batches in written.batches.items():
        assert written.logs.files[path].batches == batches
    assert written.indexes.problems == []


def test_the_producers_were_idempotent(written: Written) -> None:
    for library, codec in itertools.product(LIBRARIES, CODECS):
        batches = [
            batch for path in written.files(f"{library}-{codec}") for batch in written.batches[str(path)]
        ]
        # A library may leave a batch as it is where compression would not make it smaller.
        assert {codec} <= {batch["compresscodec"] for batch in batches} <= {codec, "none"}
        (producer,) = {batch["producerId"] for batch in batches}
        assert producer >= 0
        ends = [-1, *(batch["lastSequence"] for batch in batches)]
        assert [batch["baseSequence"] for batch in batches] == [end + 1 for end in ends[:-1]]


def test_kafka_serves_all_that_ottla_served(written: Written) -> None:
    assert written.kafka_served == written.served
    assert written.kafka_times == written.times


def test_kafka_finds_nothing_to_complain_of(written: Written) -> None:
    lines = written.kafka_log.splitlines()
    about_logs = [line for line in lines if any(f"{topic}-0" in line for topic in TOPICS)]
    assert [line for line in about_logs if re.search(" (WARN|ERROR) ", line)] == []
    recovered = any("Recovering unflushed segment" in line for line in about_logs)
    assert recovered == written.killed
