"""Kafka's VerifiableConsumer: a Java consumer in a group, in a process of its own, that says what happens to it."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.interop.client import JVM_OPTIONS
from tests.interop.kafka import NEWEST
from tests.interop.maven import class_path

WAIT_S = 180.0
STOP_TIMEOUT_S = 120.0
Place = tuple[str, int]


class VerifiableConsumer:
    """One member. In a `with` block, whose end stops it."""

    def __init__(self, servers: str, group: str, topic: str, log_file: Path, **options: str) -> None:
        arguments = {"group-id": group, "topic": topic, "session-timeout": "30000", **options}
        command = [
            *(
                "java",
                *JVM_OPTIONS,
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp",
                class_path(NEWEST),
            ),
            *("org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", servers, "--verbose"),
        ]
        for name, value in arguments.items():
            command += (f"--{name.replace('_', '-')}", value)
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()

    def until(self, is_so: Callable[[Self], bool]) -> None:
        """Wait until what it has said is so."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_so(self), WAIT_S), self.events[-20:]

    # -- what it has said

    @property
    def owned(self) -> set[Place]:
        owned: set[Place] = set()
        for event in list(self.events):
            if event["name"] in ("partitions_assigned", "partitions_revoked"):
                places = {(at["topic"], at["partition"]) for at in event["partitions"]}
                owned = owned | places if event["name"] == "partitions_assigned" else owned - places
        return owned

    @property
    def revoked(self) -> set[Place]:
        """All that was ever taken from it."""
        return {
            (at["topic"], at["partition"])
            for event in list(self.events)
            if event["name"] == "partitions_revoked"
            for at in event["partitions"]
        }

    @property
    def read(self) -> list[tuple[int, int]]:
        """Partition and offset of every record, in its order."""
        return [(e["partition"], e["offset"]) for e in list(self.events) if e["name"] == "record_data"]

    @property
    def committed(self) -> dict[Place, int]:
        done: dict[Place, int] = {}
        for event in list(self.events):
            if event["name"] == "offsets_committed" and event["success"]:
                done.update({(at["topic"], at["partition"]): at["offset"] for at in event["offsets"]})
        return done

    @property
    def failed_commits(self) -> list[dict[str, Any]]:
        return [e for e in list(self.events) if e["name"] == "offsets_committed" and not e["success"]]

    # -- its end

    def stop(self) -> None:
        """Leave the group (unless it is static) and end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
        with self._process:
            try:
                self._process.wait(STOP_TIMEOUT_S)
            finally:
                self._process.kill()
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
