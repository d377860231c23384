"""The brokers that are measured, each a process of its own: `ottla serve`, and Apache Kafka 4.2 beside it.

Both run with the settings they come with.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.kafka import NEWEST, KafkaBroker

from benchmarks.kafka import JVM_OPTIONS
from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.metadata import MetadataRequest

HOST = "127.0.0.1"
TIMEOUT_S = 30.0
_CREATE_TOPICS, _CREATE_VERSION = 19, 7
_DELETE_TOPICS, _DELETE_VERSION = 20, 6
_METADATA, _METADATA_VERSION = 3, 12
_POLL_S = 0.01
# Kafka's defaults, which are others in the tests.
_KAFKA_SETTINGS = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.index.size.max.bytes": "10485760",
    "transaction.state.log.num.partitions": "50",
}
_READY = re.compile(rb"ready on \S+:(\d+) ")
_CPU_CLOCK = 2  # as clock_getcpuclockid(3) makes its numbers out of a process id
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """Processor time that a process has taken: all of it, to the nanosecond, and that of the kernel, in ticks."""

    cpu_s: float
    system_s: float


@dataclass(frozen=True)
class Server:
    """A broker that runs."""

    name: str
    port: int
    pid: int
    data_dir: Path

    def usage(self) -> Usage:
        clock = ~self.pid << 3 | _CPU_CLOCK
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return Usage(time.clock_gettime(clock), int(fields[12]) / _TICKS_PER_S)

    def memory_mib(self, line: str) -> float:
        """A line of its memory status: VmRSS is what is resident now, VmHWM the most there ever was."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return (
            int(next(text for text in status.splitlines() if text.startswith(f"{line}:")).split()[1]) / 1024
        )

    @contextmanager
    def topic(self, partitions: int, config: Mapping[str, str] | None = None) -> Iterator[Topic]:
        """A topic of its own, whose files are gone in the end."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
        new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        (made,) = ask(self.port, _CREATE_TOPICS, _CREATE_VERSION, CreateTopicsRequest(topics=[new])).topics
        if made.error_code:
            raise RuntimeError(f"{self.name} made no topic: {made.error_code} {made.error_message}")
        yield Topic(self.port, name, made.topic_id)
        doomed = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        ask(self.port, _DELETE_TOPICS, _DELETE_VERSION, doomed)
        self._free(name, partitions)

    def _free(self, topic: str, partitions: int) -> None:
        """Both brokers keep a deleted topic's files for a minute; their memory is needed at once."""
        deadline = time.monotonic() + TIMEOUT_S
        while len(doomed := list(self.data_dir.glob(f"{topic}-*-delete"))) < partitions:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not delete {topic}")
            time.sleep(_POLL_S)
        for path in doomed:
            for segment in path.glob("*.log"):
                os.truncate(segment, 0)


class Topic(NamedTuple):
    """Where a load goes."""

    port: int
    name: str
    topic_id: uuid.UUID


def ask(port: int, api_key: int, version: int, message: Message) -> Any:
    """One request on a connection of its own, and its answer."""
    with socket.create_connection((HOST, port), TIMEOUT_S) as connection:
        return ask_on(connection, api_key, version, message)


def ask_on(connection: socket.socket, api_key: int, version: int, message: Message) -> Any:
    connection.sendall(b"".join(frame.request_parts(api_key, version, 1, "bench", message)))
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return frame.decode_response(api_key, version, _exactly(connection, size))[1]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) != size:
        raise RuntimeError("the broker closed the connection")
    return data


def first_answer(port: int) -> None:
    """Wait until a Metadata request is answered."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            ask(port, _METADATA, _METADATA_VERSION, MetadataRequest(topics=[]))
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)


@contextmanager
def ottla(
    work_dir: Path,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
    name: str = "ottla",
    python: str = sys.executable,
) -> Iterator[Server]:
    """`ottla serve` with its data below the work directory; port 0 is any free one."""
    data_dir = work_dir / name
    command = [python, "-P", "-m", "ottla", "serve", "--data", str(data_dir), "--http", "off"]
    for key, value in (settings or {}).items():
        command += ("--set", f"{key}={value}")
    process = subprocess.Popen([*command, "--listen", f"{HOST}:{port}"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not port:
            found = _READY.search(process.stdout.readline())
            if found is None:
                raise RuntimeError("ottla serve did not start")
            port = int(found[1])
        yield Server(name, port, process.pid, data_dir)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


@contextmanager
def kafka(work_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Kafka with its data below the work directory, with the heap and collector of its start script."""
    overrides = {**_KAFKA_SETTINGS, **(settings or {})}
    broker = KafkaBroker(NEWEST, work_dir / "kafka", overrides, JVM_OPTIONS)
    with broker:
        yield Server("Kafka", int(broker.servers.rpartition(":")[2]), broker.pid, broker.data_dir)
