"""Real Kafka clients, driven from Python: one process each, one JSON line per call.

Kafka's own are behind java/KafkaOps.java; golang.py has two more, which take and give the same lines.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from tests.interop.maven import class_path

JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def b64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def record(
    key: bytes | None,
    value: bytes | None,
    timestamp: int | None = None,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> dict[str, Any]:
    """One record as `KafkaClient.produce` takes it."""
    return {
        "key": b64(key),
        "value": b64(value),
        "timestamp": timestamp,
        "headers": [[name, b64(data)] for name, data in headers or []],
    }


class CallError(RuntimeError):
    """A call that failed, with the broker's error code if it was the broker that refused it."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


class Client:
    """Admin, producers and consumers of one client library, talking to one broker."""

    def __init__(self, command: list[str], log_file: Path) -> None:
        self._log: IO[bytes] = log_file.open("ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client ended during {op}; see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise CallError(f"{op} {arguments.get('topic', '')}: {answer['error']}", answer.get("code"))
        return answer

    def create(self, topic: str, partitions: int = 1, **configs: Any) -> None:
        """Create a topic; `_` in a config name stands for `.`."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.call("create", topic=topic, partitions=partitions, configs=named)

    def produce(
        self, topic: str, records: list[dict[str, Any]], producer: dict[str, str], partition: int = 0
    ) -> list[int]:
        """Send the records in one batch and wait for them; equal producer settings share one producer."""
        answer = self.call("produce", topic=topic, partition=partition, producer=producer, records=records)
        offsets: list[int] = answer["offsets"]
        return offsets

    def consume(self, topic: str, partition: int = 0, isolation: str = "read_uncommitted") -> dict[str, Any]:
        """Every record of a partition with its `start` and `end` offsets."""
        return self.call("consume", topic=topic, partition=partition, isolation=isolation)

    def probe(
        self, topic: str, offsets: list[int], partition: int = 0, isolation: str = "read_uncommitted"
    ) -> list[dict[str, Any] | None]:
        """For each offset the first record at or after it."""
        answer = self.call("probe", topic=topic, partition=partition, isolation=isolation, offsets=offsets)
        found: list[dict[str, Any] | None] = answer["records"]
        return found

    def times(self, topic: str, timestamps: list[int], partition: int = 0) -> list[list[int | None]]:
        """For each timestamp `[timestamp, offset, timestamp found]`."""
        answer = self.call("times", topic=topic, partition=partition, timestamps=timestamps)
        found: list[list[int | None]] = answer["times"]
        return found

    def close(self) -> None:
        """End the process without closing producers: open transactions stay open."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            assert stream is not None
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Told(NamedTuple):
    """How one of Kafka's tools ended, and what it printed."""

    code: int
    out: str
    err: str


class KafkaClient(Client):
    """The Java client of one Kafka version; its tools are in the same JVM."""

    def __init__(self, version: str, servers: str, log_file: Path) -> None:
        self.servers = servers
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = ["java", *JVM_OPTIONS, logging, "-cp", class_path(version), "KafkaOps", servers]
        super().__init__(command, log_file)

    def run_tool(self, main_class: str, *arguments: str, typed: str = "") -> Told:
        """Run a tool with `typed` as its standard input."""
        answer = self.call("tool", main=main_class, arguments=arguments, typed=typed)
        return Told(answer["code"], answer["out"], answer["err"])
