"""The broker that is attacked: inside this process, where time can be moved, or `ottla serve` seen from outside.

An attack may use what both have: `port`, `data`, `clock`, `create_topic`, `topics` and `metrics`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.cli.serving import TIMEOUT_S
from tests.server.wire import Wire, wait_until

SETTINGS = {"log.cleaner.enable": "false", "group.initial.rebalance.delay.ms": "0"}
CREATE_TOPICS, METADATA, FIND_COORDINATOR = 19, 3, 10
_TURNS = re.compile(r'ottla_event_loop_turn_cpu_seconds_bucket{le="(.+)"}')
_IDLE_SHARE = 0.02


class Attacked(Protocol):
    """What attacks and the harness use of a broker."""

    port: int
    data: str
    clock: Any  # `advance(ms)`

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None: ...

    def topics(self) -> list[str]: ...

    def metrics(self) -> dict[str, float]:
        """Every line of `/metrics`, by name and labels."""

    def metrics_text(self) -> str: ...

    def worst_turn_ms(self) -> float:
        """The most processor time that a turn of the loop took since this was last asked."""

    def loop_ns(self) -> int:
        """All processor time of the loop so far."""


class Inside(EmbeddedBroker):
    """In this process."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, http=True)

    def __enter__(self) -> Inside:
        super().__enter__()
        self.call(self.broker.garbage.take_over)  # as `ottla serve` does
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.garbage.give_back()
        super().__exit__()

    def metrics_text(self) -> str:
        return _get(f"http://{self.broker.http}/metrics")

    def metrics(self) -> dict[str, float]:
        return _parsed(self.metrics_text())

    def loop_ns(self) -> int:
        self.call(self.broker.runtime.watch.close)
        return self.broker.metrics.turn_processor.total_ns


class Outside:
    """`ottla serve` in a process of its own, which nobody else's memory or garbage is in."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        self.data = tempfile.mkdtemp(prefix="ottla-attacked-")
        self.clock = self
        self._errors = Path(self.data) / "errors.txt"
        words = ["serve", "--data", self.data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        for key, value in {**SETTINGS, **(settings or {})}.items():
            words += ["--set", f"{key}={value}"]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ottla", *words], stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def __enter__(self) -> Outside:
        try:
            assert self.process.stdout is not None
            ready = re.search(r"ready on 127\.0\.0\.1:(\d+)", self.process.stdout.readline())
            assert ready is not None, self._errors.read_text()
            self.port = int(ready[1])
            self._wait_until_idle()
            told = re.search(r"http://\S+/metrics", self._errors.read_text())
            assert told is not None
            self._url = told[0]
            self._turns = self._turn_counts()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        shutil.rmtree(self.data)

    def _wait_until_idle(self) -> None:
        """A start goes on for a moment after the ready line."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            before_ns = self.loop_ns()
            time.sleep(0.05)  # what is measured, not what is hoped for
            if self.loop_ns() - before_ns < 50_000_000 * _IDLE_SHARE:
                return
            assert time.monotonic() < deadline, "the broker does not come to rest"

    # -- what an attack uses

    def advance(self, ms: int) -> None:
        """Here time goes by itself."""
        time.sleep(ms / 1000)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        settings = [CreatableTopicConfig(name=key, value=str(value)) for key, value in (config or {}).items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        with Wire(self) as wire:
            asked = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            (answer,) = wire.ask(CREATE_TOPICS, 5, asked).topics
        assert answer.error_code == 0, answer.error_message

    def topics(self) -> list[str]:
        with Wire(self) as wire:
            return sorted(topic.name for topic in wire.ask(METADATA, 9, MetadataRequest(topics=None)).topics)

    # -- what the harness reads

    def metrics_text(self) -> str:
        return _get(self._url)

    def metrics(self) -> dict[str, float]:
        return _parsed(self.metrics_text())

    def worst_turn_ms(self) -> float:
        """The upper end of the histogram's bucket that it falls into."""
        before, self._turns = self._turns, self._turn_counts()
        worst_s, below = 0.0, 0.0
        for edge_s, count in self._turns.items():
            new = count - before[edge_s]
            if new > below:
                worst_s, below = edge_s, new
        return worst_s * 1000

    def _turn_counts(self) -> dict[float, float]:
        """How many turns took so many seconds at most."""
        found = ((_TURNS.fullmatch(name), value) for name, value in self.metrics().items())
        return {float(match[1]): value for match, value in found if match}

    def loop_ns(self) -> int:
        """The loop runs on the first thread."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])

    def memory_bytes(self) -> int:
        """Without pages of files, which the system takes back when it needs them."""
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def log_text(self) -> str:
        return self._errors.read_text()


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        text: str = answer.read().decode()
    return text


def _parsed(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def segments(broker: Attacked, topic: str, partition: int = 0) -> int:
    """How many segments a partition has."""
    return sum(name.endswith(".log") for name in os.listdir(f"{broker.data}/{topic}-{partition}"))


def await_coordinator(broker: Attacked, group: str) -> None:
    """The first request for one makes the topic that groups are kept in."""
    with Wire(broker) as wire:
        wait_until(lambda: wire.ask(FIND_COORDINATOR, 2, FindCoordinatorRequest(key=group)).error_code == 0)
