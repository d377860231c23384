"""What a Kafka broker leaves behind under load, stopped or killed: ottla opens it as Kafka itself then does."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ottla.config import LogConfig
from ottla.runtime import SystemRuntime
from ottla.storage.log.log import Log
from ottla.storage.producers import snapshot_file as producer_snapshot
from tests.consuming import consume, open_logs
from tests.interop.client import KafkaClient
from tests.interop.kafka import NEWEST, KafkaBroker

SETTINGS = {"segment.index.bytes": "16384", "index.interval.bytes": "600"}
PLAIN = tuple(f"plain-{number}" for number in range(7))
COMPACTED = tuple(f"compacted-{number}" for number in range(3))
TOPICS = (*PLAIN, *COMPACTED)
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
# All is cleaned again and again: a kill finds the cleaner at work.
BUSY_CLEANER = {"log.cleaner.backoff.ms": "20", "log.cleaner.dedupe.buffer.size": "2000000"}
CONFIGS = {topic: LogConfig.from_properties({**SETTINGS, **COMPACT}) for topic in COMPACTED}
NO_CLEANER = {"log.cleaner.enable": "false"}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
SETTLE_TIMEOUT_S = 120.0
LOST = (".index", ".timeindex", ".txnindex", ".snapshot", "")  # the last is leader-epoch-checkpoint

_LOADED = re.compile(
    r"Completed load of Log\(dir=\S*/([^/ ]+), .*?logStartOffset=(\d+), logEndOffset=(\d+)\) with (\d+) segments"
)


@dataclass
class Reading:
    """What a consumer finds in one partition."""

    start: int
    end: int
    stable: int
    records: list[dict[str, Any]]
    committed: list[dict[str, Any]]


@dataclass
class Left:
    """A directory as Kafka left it, and what was read from copies of it."""

    data_dir: Path
    killed: bool
    loaded: dict[str, tuple[int, ...]]  # start, end and number of segments, as Kafka's log tells them
    kafka: dict[str, Reading]  # by Kafka
    ours: dict[str, Reading]  # by ottla
    segments: dict[str, int]
    after_kafka: dict[str, Reading]  # by ottla, from what Kafka had recovered


@pytest.fixture(scope="module", params=["stopped", "killed"])
def left(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> Left:
    work_dir = tmp_path_factory.mktemp("load") / "work"
    killed = request.param == "killed"
    with KafkaBroker(NEWEST, work_dir, BUSY_CLEANER) as broker, broker.client() as client:
        begin_load(client, rng)
        client.call("await_load", batches=rng.randint(30, 50))
        while not is_cleaned(client.consume(COMPACTED[0])):
            client.call("await_load", batches=10)
        if killed:
            broker.kill()
        else:
            broker.stop()
    data_dir = work_dir / "data"
    ours = copy_of(data_dir, tmp_path_factory)
    with opened(ours) as logs:
        readings = {name: reading(log) for name, log in logs.items()}
        segments = {name: len(log.segments) for name, log in logs.items()}
    kafkas = copy_of(work_dir, tmp_path_factory)
    loaded, kafka = let_kafka_read(kafkas)
    with opened(kafkas / "data") as logs:
        after_kafka = {name: reading(log) for name, log in logs.items()}
    return Left(data_dir, killed, loaded, kafka, readings, segments, after_kafka)


def begin_load(client: KafkaClient, rng: random.Random) -> None:
    """Topics of all kinds, each partition written to by one or two producers at once."""
    streams = []
    for number, topic in enumerate(TOPICS):
        partitions = rng.randint(1, 2)
        configs = {
            # One topic of each kind has many segments, whatever the seed.
            "internal.segment.bytes": "3000" if number % 7 == 0 else str(rng.randint(3000, 30_000)),
            "message.timestamp.type": rng.choice(("CreateTime", "CreateTime", "LogAppendTime")),
            **SETTINGS,
            **(COMPACT if topic in COMPACTED else {}),
        }
        client.call("create", topic=topic, partitions=partitions, configs=configs)
        codec = CODECS[number % len(CODECS)]
        for partition in range(partitions):
            for writer in range(rng.randint(1, 2)):
                name = f"{topic}-{partition}-{writer}"
                producer = {"client.id": name, "compression.type": codec}
                if rng.random() < 0.5 or number % 7 == 0:
                    producer |= {"transactional.id": name, "transaction.timeout.ms": "900000"}
                else:
                    producer |= {"enable.idempotence": rng.choice(("true", "false"))}
                streams.append(
                    {
                        "topic": topic,
                        "partition": partition,
                        "producer": producer,
                        "keyed": topic in COMPACTED,
                        "seed": rng.randrange(2**31),
                    }
                )
    client.call("load", streams=streams)


def is_cleaned(found: dict[str, Any]) -> bool:
    """Whether the cleaner, which has a thread of its own, has been there."""
    return len(found["records"]) < found["end"] * 0.6


def await_transactions(client: KafkaClient) -> None:
    """Transactions that were being ended go on when Kafka starts: until each has its markers."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while "Prepare" in (
        listed := client.run_tool(TRANSACTIONS, "--bootstrap-server", client.servers, "list").out
    ):
        assert time.monotonic() < deadline, listed


def copy_of(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(directory, tmp_path_factory.mktemp("copy") / directory.name))


@contextmanager
def opened(data_dir: Path) -> Iterator[dict[str, Log]]:
    runtime = SystemRuntime()
    manager, logs = open_logs(data_dir, runtime, LogConfig.from_properties(SETTINGS), CONFIGS)
    yield logs
    manager.close()
    runtime.close()


def reading(log: Log) -> Reading:
    records, committed = consume(log), consume(log, committed=True)
    return Reading(log.start_offset, log.end_offset, log.last_stable_offset, records, committed)


def let_kafka_read(work_dir: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, Reading]]:
    found = {}
    with KafkaBroker(NEWEST, work_dir, NO_CLEANER) as broker, broker.client() as client:
        loaded = {
            name: tuple(map(int, offsets))
            for name, *offsets in _LOADED.findall(broker.log_text())
            if not name.startswith("__cluster_metadata")
        }
        await_transactions(client)
        for topic, partitions in client.call("topics")["topics"].items():
            for partition in range(partitions):
                everything = client.consume(topic, partition)
                committed = client.consume(topic, partition, "read_committed")
                found[f"{topic}-{partition}"] = Reading(
                    everything["start"],
                    everything["end"],
                    committed["end"],
                    everything["records"],
                    committed["records"],
                )
        broker.stop()
    return loaded, found


def test_a_log_begins_and_ends_where_kafka_says(left: Left) -> None:
    assert {
        name: (found.start, found.end, left.segments[name]) for name, found in left.ours.items()
    } == left.loaded


def test_every_record_is_there_and_no_other(left: Left) -> None:
    assert set(left.kafka) == set(left.ours)
    for name, ours in left.ours.items():
        # Kafka has gone on since: markers for transactions that were being ended, groups in its own topics.
        assert [one for one in left.kafka[name].records if one["offset"] < ours.end] == ours.records
        if not name.startswith("__"):
            assert len(left.kafka[name].records) == len(ours.records)


def test_committed_records_are_those_that_kafka_sees(left: Left) -> None:
    for name, ours in left.ours.items():
        kafka = left.kafka[name]
        assert ours.stable <= kafka.stable
        assert [one for one in kafka.committed if one["offset"] < ours.stable] == ours.committed


def test_what_kafka_has_recovered_is_read_as_kafka_reads_it(left: Left) -> None:
    for name, kafka in left.kafka.items():
        if not name.startswith("__"):
            assert left.after_kafka[name] == kafka


def test_the_load_reaches_every_kind_of_record(left: Left) -> None:
    ours = left.ours
    assert sum(len(found.records) for found in ours.values()) > 1000
    assert sum(len(found.records) - len(found.committed) for found in ours.values()) > 10
    assert left.segments["plain-0-0"] > 3
    assert len(ours["compacted-0-0"].records) < ours["compacted-0-0"].end * 0.8


def test_lost_indexes_are_rebuilt_as_kafka_had_written_them(
    left: Left, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From the logs alone: no index, no snapshot, no leader epochs, no checkpoint."""
    data_dir = copy_of(left.data_dir, tmp_path_factory)
    files = [path for path in data_dir.glob("plain-*/*") if path.suffix in LOST]
    assert {path.suffix for path in files} == set(LOST)
    kept = {path: path.read_bytes() for path in files}
    (data_dir / "recovery-point-offset-checkpoint").unlink()
    (data_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for path in files:
        path.unlink()
    with opened(data_dir):
        pass
    for path, data in kept.items():
        rebuilt = path.read_bytes() if path.exists() else b""
        if left.killed and path.suffix in (".index", ".timeindex") and is_active(path):
            continue  # still preallocated, and without its last entry
        if left.killed and path.suffix == ".snapshot" and not data:
            continue  # killed before it had written it
        if path.suffix == ".snapshot":
            assert sorted(producer_snapshot.decode(rebuilt, str(path))) == sorted(
                producer_snapshot.decode(data, str(path))
            )
        else:
            assert rebuilt == data, path


def is_active(path: Path) -> bool:
    return path.stem == max(log.stem for log in path.parent.glob("*.log"))
