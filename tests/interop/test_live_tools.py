"""`ottla log` on the directory of a running Kafka broker that is written to, cleaned and trimmed at the same time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.client import KafkaClient
from tests.interop.kafka import NEWEST, KafkaBroker

ROUNDS = 6
BATCHES_BETWEEN = 5
PAUSE_MS = 40  # between two batches of a stream: the logs must not outgrow the test
# Segments come and go while somebody reads them.
RESTLESS = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
}
SMALL = {"internal.segment.bytes": "4000", "index.interval.bytes": "600", "file.delete.delay.ms": "0"}
TOPICS = {
    "plain": {},
    "txn": {},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "trimmed": {"cleanup.policy": "delete", "retention.bytes": "12000"},
}


@pytest.fixture(scope="module")
def busy(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> Iterator[tuple[KafkaBroker, KafkaClient]]:
    """A broker under load."""
    with KafkaBroker(NEWEST, tmp_path_factory.mktemp("busy"), RESTLESS) as broker, broker.client() as client:
        streams = []
        for topic, configs in TOPICS.items():
            client.call("create", topic=topic, partitions=1, configs={**SMALL, **configs})
            for codec in ("none", "lz4", "zstd"):
                producer = {"client.id": f"{topic}-{codec}", "compression.type": codec}
                if topic in ("txn", "compacted"):
                    producer |= {"transactional.id": f"{topic}-{codec}"}
                streams.append(
                    {
                        "topic": topic,
                        "producer": producer,
                        "keyed": topic == "compacted",
                        "pause_ms": PAUSE_MS,
                        "seed": rng.randrange(2**31),
                    }
                )
        client.call("load", streams=streams)
        yield broker, client


def ottla(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, the JSON lines, and what went to stderr."""
    command = [sys.executable, "-m", "ottla", "log", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_verify_finds_no_defect(busy: tuple[KafkaBroker, KafkaClient]) -> None:
    broker, client = busy
    for _ in range(ROUNDS):
        client.call("await_load", batches=BATCHES_BETWEEN)
        code, findings, errors = ottla("verify", str(broker.data_dir))
        assert [one for one in findings if one["level"] == "defect"] == []
        assert (code, errors) == (0, "")


def test_dump_goes_through_everything(busy: tuple[KafkaBroker, KafkaClient]) -> None:
    broker, client = busy
    client.call("await_load", batches=BATCHES_BETWEEN)
    code, dumped, errors = ottla("dump", str(broker.data_dir))
    assert (code, errors) == (0, "")
    assert {one["partition"] for one in dumped} >= {f"{topic}-0" for topic in TOPICS}


@pytest.mark.parametrize("topic", ["plain", "txn", "compacted"])
def test_dump_shows_records_as_a_consumer_gets_them(
    busy: tuple[KafkaBroker, KafkaClient], topic: str
) -> None:
    broker, client = busy
    client.call("await_load", batches=BATCHES_BETWEEN)
    before = client.consume(topic)
    code, dumped, errors = ottla(
        "dump", str(broker.data_dir / f"{topic}-0"), "--records", "--encoding", "base64"
    )
    assert (code, errors) == (0, "")
    after = client.consume(topic)
    known = {one["offset"]: plain(one) for one in (*before["records"], *after["records"])}
    found = {one["offset"]: one for one in dumped}
    # The cleaner may move records into a file that the tool has read already.
    assert topic == "compacted" or {one["offset"] for one in before["records"]} <= set(found)
    assert len(set(found) & set(known)) > 10
    for offset in set(found) & set(known):
        told = {name: found[offset][name] for name in ("offset", "timestamp", "key", "value", "headers")}
        assert told == known[offset]


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """A consumed record in the words of `ottla log dump`."""
    headers = [{"key": name, "value": value} for name, value in record["headers"]]
    return {**{name: record[name] for name in ("offset", "timestamp", "key", "value")}, "headers": headers}
