"""A real `ottla serve` process for tests: its output, its readiness, its end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

from confluent_kafka.admin import AdminClient

TIMEOUT_S = 60
READY = re.compile(r"ottla: ready on (\S+) \(node (\d+), (\d+) topics?, (\d+) ms\)")


class Serve:
    """`ottla serve ARGS` on free ports, its standard error in a file."""

    PREFIX: ClassVar[tuple[str, ...]] = ()  # a command that runs this one

    def __init__(self, directory: Path, *args: str, nodes: int = 1) -> None:
        self.errors = directory / "errors.txt"
        command = [*self.PREFIX, sys.executable, "-m", "ottla", "serve", "--http", "off", *args]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.ready = [self.next_ready() for _ in range(nodes)]
        self.bootstrap = self.ready[0][0]

    def next_ready(self) -> tuple[str, int, int]:
        """Wait for the next ready line: address, node, topics."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = READY.fullmatch(line.strip())
        assert found is not None, f"{line!r}, {self.errors.read_text()}"
        return found[1], int(found[2]), int(found[3])

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def __enter__(self) -> Serve:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)


def leaders(bootstrap: str, topic: str, partitions: int) -> list[int]:
    """Who leads each partition of a new topic; brokers learn of one in their own time, so it is asked until all do."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = [
            part.leader for part in admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions.values()
        ]
        if len(found) == partitions and -1 not in found:
            return found
        assert time.monotonic() < deadline, f"leaders of {topic}: {found}"
