"""The broker that is attacked: inside this process, or in one of its own, whose memory can be measured.

python -m tests.reliability.attacks.brokers DIRECTORY    one that another process looks into
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any, Protocol

from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.cli.serving import TIMEOUT_S
from tests.reliability.attacks.remote import Link, serve
from tests.server.wire import Wire, wait_until

ROOT = Path(__file__).parents[3]
SETTINGS = {"log.cleaner.enable": "false"}
FIND_COORDINATOR = 10
_TURNS = re.compile(r'ottla_event_loop_turn_cpu_seconds_bucket{le="(.+)"}')


class Attacked(Protocol):
    """What attacks and the harness use of a broker."""

    port: int
    data: str

    @property
    def clock(self) -> Any:
        """`advance(ms)`"""

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

    def __init__(self, data: str | None = None) -> None:
        super().__init__(SETTINGS, data, http=True)

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
    """In a process of its own, which nobody else's memory or garbage is in; it can be looked into all the same.

    Where several attacks run at once none may move the clock for the others: then time passes by itself.
    """

    def __init__(self, *, in_real_time: bool) -> None:
        self.data = tempfile.mkdtemp(prefix="ottla-attacked-")  # on a disk, so that its pages are no memory
        self._errors = Path(f"{self.data}.log")
        self._in_real_time = in_real_time
        self._there: Any = None
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, self.data],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def __enter__(self) -> Outside:
        try:
            assert self.process.stdout is not None
            assert self.process.stdout.readline() == "ready\n", self.log_text()
            self._there = Link(_address(self.data)).root()
            self.port: int = self._there.port
            self.clock = self if self._in_real_time else self._there.clock
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        shutil.rmtree(self.data)
        self._errors.unlink()

    def __getattr__(self, name: str) -> Any:
        """All that a broker in this process has."""
        return getattr(self._there, name)

    def advance(self, ms: int) -> None:
        time.sleep(ms / 1000)

    def turn_counts(self) -> dict[float, float]:
        """How many turns took so many seconds at most."""
        found = ((_TURNS.fullmatch(name), value) for name, value in self._there.metrics().items())
        return {float(match[1]): value for match, value in found if match}

    def memory_bytes(self) -> int:
        """Without pages of files, which the system takes back when it needs them."""
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def log_text(self) -> str:
        return self._errors.read_text()


def worst_turn_ms(before: Mapping[float, float], now: Mapping[float, float]) -> float:
    """The upper end of the histogram's bucket that the longest turn since then falls into."""
    counts = {edge_s: count - before[edge_s] for edge_s, count in now.items()}
    return 1000 * min(edge_s for edge_s, count in counts.items() if count == max(counts.values()))


def _address(data: str) -> str:
    return f"{data}.socket"


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


def main(data: str) -> None:
    """Ends when it is killed."""
    with Listener(_address(data)) as listener, Inside(data) as broker:
        print("ready", flush=True)
        serve(broker, listener)


if __name__ == "__main__":
    main(sys.argv[1])
