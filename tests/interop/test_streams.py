"""A small Kafka Streams application with exactly_once_v2 on `ottla serve`, which is killed, as is the broker."""

from __future__ import annotations

import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.client import JVM_OPTIONS
from tests.interop.kafka import NEWEST
from tests.interop.maven import streams_class_path
from tests.interop.serving import OttlaServer

PARTITIONS = 2
WORDS = ["storm", "sea", "ship", "shore", "sail", "salt", "star", "stone"]
LINES = 120
TIMEOUT_S = 240.0


class WordCount:
    """The application, in a JVM of its own."""

    def __init__(self, servers: str, directory: Path) -> None:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = ["java", *JVM_OPTIONS, logging, "-cp", streams_class_path(NEWEST), "WordCount"]
        self.log_file = directory / "streams.log"
        self._log = self.log_file.open("ab")
        self._process = subprocess.Popen(
            [*command, servers, str(directory / "state")],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "RUNNING":
                return self
        raise RuntimeError(self.log_file.read_text()[-4000:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


class Counts:
    """Reads topic `counts` as it grows, committed records only."""

    def __init__(self, servers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "unused",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition("counts", number, 0) for number in range(PARTITIONS)])
        self.seen: dict[str, list[int]] = {word: [] for word in WORDS}

    def until(self, total: int) -> None:
        while sum(map(len, self.seen.values())) < total:
            message = self._consumer.poll(TIMEOUT_S)
            assert message is not None, f"{sum(map(len, self.seen.values()))} of {total} counts"
            if message.error() is None:
                self.seen[(message.key() or b"").decode()].append(int(message.value() or b""))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OttlaServer]:
    with OttlaServer(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0") as server:
        yield server


def test_every_word_is_counted_once_whoever_is_killed(
    server: OttlaServer, tmp_path: Path, rng: random.Random
) -> None:
    admin = AdminClient({"bootstrap.servers": server.servers})
    topics = [NewTopic("lines", PARTITIONS), NewTopic("counts", PARTITIONS)]
    for future in admin.create_topics(topics).values():
        future.result(TIMEOUT_S)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 5))) for _ in range(LINES)]
    totals: Counter[str] = Counter()
    counts = Counts(server.servers)

    def feed(part: list[str]) -> None:
        producer = Producer({"bootstrap.servers": server.servers, "log_level": 0})
        for line in part:
            totals.update(line.split())
            producer.produce("lines", line)
        assert producer.flush(TIMEOUT_S) == 0

    third = LINES // 3
    with WordCount(server.servers, tmp_path):
        feed(lines[:third])
        counts.until(totals.total() // 2)
    feed(lines[third : 2 * third])  # while nobody counts: the application was killed
    with WordCount(server.servers, tmp_path):
        counts.until(totals.total() // 2 + 10)
        server.kill()
        server.start()
        feed(lines[2 * third :])
        counts.until(totals.total())
    counts.close()
    assert counts.seen == {word: list(range(1, totals[word] + 1)) for word in WORDS}
