"""A client made of a plain socket: it sends what a test says, whole requests or any bytes, and reads answers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.builder import NewRecord, build_batch

TIMEOUT_S = 60.0
PRODUCE, FETCH, API_VERSIONS = 0, 1, 18


class Place(Protocol):
    """Where a broker is, on this machine: an `EmbeddedBroker`, or one in a process of its own."""

    port: int


class Wire:
    """One connection. Every wait has an end."""

    def __init__(self, broker: Place, receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.connect(("127.0.0.1", broker.port))
        except OSError:
            self.socket.close()
            raise
        self._next_id = 1
        self.sent = 0  # of something that a test sends in parts

    @property
    def name(self) -> str:
        """As the broker's log calls it."""
        host, port = self.socket.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    # -- bytes

    def send_bytes(self, data: bytes | bytearray) -> None:
        self.socket.sendall(data)

    def send_frame(self, data: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(data)) + data)

    def read_exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self.socket.recv(size)
            if not part:
                raise EOFError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size)

    def is_closed(self) -> bool:
        """Whether the broker ends the connection, without saying anything more; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # -- requests

    def send(self, api_key: int, version: int, message: Message) -> int:
        """Send a request; its correlation id."""
        correlation_id = self._next_id
        self._next_id += 1
        self.send_bytes(b"".join(frame.request_parts(api_key, version, correlation_id, "wire", message)))
        return correlation_id

    def receive(self, api_key: int, version: int) -> tuple[int, Any]:
        return frame.decode_response(api_key, version, self.read_frame())

    def ask(self, api_key: int, version: int, message: Message) -> Any:
        """Send a request and wait for its answer."""
        sent = self.send(api_key, version, message)
        correlation_id, response = self.receive(api_key, version)
        assert correlation_id == sent
        return response

    def ping(self) -> None:
        """A question that is answered at once by a broker that is well."""
        assert self.ask(API_VERSIONS, 3, api_versions()).error_code == 0


def api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="wire", client_software_version="1")


def records(*values: bytes, timestamp: int | None = None, **fields: Any) -> bytes:
    now_ms = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    return bytes(build_batch([NewRecord(now_ms, None, value, []) for value in values], **fields))


def produce(topic: str, data: bytes | None, *, acks: int = 1, partition: int = 0) -> ProduceRequest:
    part = PartitionProduceData(index=partition, records=None if data is None else memoryview(data))
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
    )


def fetch(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1 << 20,
) -> FetchRequest:
    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=50 << 20,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread brings about."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)
