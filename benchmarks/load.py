"""The load: raw sockets that keep a number of requests under way on each connection.

It runs in a process of its own and must never be what is slow. So everything is encoded before; a connection sends
one block of bytes again and again (brokers do not mind equal correlation ids), and of the answers only the bytes
are counted, because all answers of a run have the same size. Whether all went well is asked in the end.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.brokers import HOST, TIMEOUT_S, Topic, ask, ask_on
from benchmarks.data import Kind
from ottla.protocol import frame
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE, PRODUCE_VERSION = 0, 12
FETCH, FETCH_VERSION = 1, 16
_ALL = -1
_RETRY_S = 0.01
_RECEIVE_BYTES = 1 << 20
_LENGTH = struct.Struct(">i")


class Taken(NamedTuple):
    """What a load took: the time from the first request to the last answer, and the load's own processor time."""

    seconds: float
    load_cpu_s: float


class Shape(NamedTuple):
    """How a load looks."""

    kind: Kind
    connections: int
    window: int  # requests under way on each
    partitions: int  # which the connections share evenly


def produce(topic: Topic, shape: Shape, requests: int) -> Taken:
    """Send so many requests in all, each of one batch."""
    batch = bytes(shape.kind.batch())
    each = requests // shape.connections
    lines = []
    for number in range(shape.connections):
        partition = number % shape.partitions
        connection = first_batch(topic, partition, batch)
        request = encoded(PRODUCE, PRODUCE_VERSION, produce_request(topic, partition, batch))
        lines.append(_Repeating(connection, request, shape.window, each))
    taken = drive([line.socket for line in lines], lines)
    expected = (each + 2) * shape.kind.records * shape.connections // shape.partitions
    for partition in range(shape.partitions):
        end = ask(topic.port, PRODUCE, PRODUCE_VERSION, produce_request(topic, partition, batch))
        if (offset := end.responses[0].partition_responses[0].base_offset) != expected:
            raise RuntimeError(f"partition {partition} ended at {offset} instead of {expected}")
    return taken


def repeat(port: int, request: bytes, connections: int, window: int, requests: int) -> Taken:
    """The same request so many times in all, on some connections."""
    lines = []
    for _ in range(connections):
        connection = socket.create_connection((HOST, port), TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines.append(_Repeating(connection, request, window, requests // connections))
    return drive([line.socket for line in lines], lines)


def produce_request(topic: Topic, partition: int, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=memoryview(batch))
    return ProduceRequest(
        acks=_ALL, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic.name, partition_data=[data])]
    )


def first_batch(topic: Topic, partition: int, batch: bytes) -> socket.socket:
    """A connection on which one batch has been appended: a new topic may not be led at once."""
    connection = socket.create_connection((HOST, topic.port), TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        answer = ask_on(connection, PRODUCE, PRODUCE_VERSION, produce_request(topic, partition, batch))
        code = answer.responses[0].partition_responses[0].error_code
        if not code:
            return connection
        if time.monotonic() > deadline:
            raise RuntimeError(f"{topic.name}-{partition} cannot be written: error {code}")
        time.sleep(_RETRY_S)


def fetch_request(topic: Topic, offset: int, max_bytes: int, max_wait_ms: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])],
    )


def fetch(topic: Topic, kind: Kind, log_bytes: int, passes: int, size_bytes: int, connections: int) -> Taken:
    """Read partition 0 from its beginning, so many times over on each connection, in answers of this size.

    What an answer holds of a batch that did not fit whole is read again, as a client does.
    """
    batch_bytes = len(kind.batch())
    batches = size_bytes // batch_bytes
    answers = log_bytes // (batches * batch_bytes)
    requests = [
        encoded(FETCH, FETCH_VERSION, fetch_request(topic, index * batches * kind.records, size_bytes, 0))
        for index in range(answers)
    ]
    lines = [
        _Fetching(
            socket.create_connection((HOST, topic.port), TIMEOUT_S), requests * passes, batches * batch_bytes
        )
        for _ in range(connections)
    ]
    return drive([line.socket for line in lines], lines)


def encoded(api_key: int, version: int, message: Any) -> bytes:
    return b"".join(frame.request_parts(api_key, version, 1, "bench", message))


def drive(sockets: list[socket.socket], lines: list[Any]) -> Taken:
    """Let every connection work until it says that it is done."""
    by_fd: dict[int, Callable[[int], int]] = {
        connection.fileno(): line.turn for connection, line in zip(sockets, lines, strict=True)
    }
    watched: dict[int, int] = {}
    with select.epoll() as poller:
        for connection in sockets:
            connection.setblocking(False)
            poller.register(connection, select.EPOLLIN)
            watched[connection.fileno()] = select.EPOLLIN
        cpu_before, before = time.process_time(), time.perf_counter()
        events = [(fd, 0) for fd in by_fd]
        left = len(by_fd)
        while left:
            for fd, event in events:
                wanted = by_fd[fd](event)
                if wanted != watched[fd]:
                    watched[fd] = wanted
                    poller.modify(fd, wanted)
                    left -= not wanted
            if left and not (events := poller.poll(TIMEOUT_S)):
                raise RuntimeError("the broker does not answer any more")
        taken = Taken(time.perf_counter() - before, time.process_time() - cpu_before)
    for connection in sockets:
        connection.close()
    return taken


class _Repeating:
    """A connection that sends one request again and again, and keeps its window full."""

    def __init__(self, connection: socket.socket, request: bytes, window: int, requests: int) -> None:
        self.socket = connection
        connection.sendall(request)  # to see how large an answer is
        self._answer_bytes = _LENGTH.size + _LENGTH.unpack(connection.recv(4, socket.MSG_WAITALL))[0]
        connection.recv(self._answer_bytes - 4, socket.MSG_WAITALL)
        self._request_bytes = len(request)
        self._block = memoryview(request * (window + 1))
        self._position = 0  # in the first request of the block: what has been sent of it
        self._due_bytes = min(window, requests) * len(request)
        self._to_come_bytes = requests * self._answer_bytes
        self._unsent = max(0, requests - window)
        self._partial_bytes = 0  # of an answer
        self._scratch = bytearray(64 << 10)

    def turn(self, event: int) -> int:
        """Receive and send what goes; returns what to wait for, nothing when all is answered."""
        if event & select.EPOLLIN:
            size = self.socket.recv_into(self._scratch)
            if not size:
                raise RuntimeError("the broker closed the connection")
            self._to_come_bytes -= size
            answers, self._partial_bytes = divmod(self._partial_bytes + size, self._answer_bytes)
            more = min(answers, self._unsent)
            self._unsent -= more
            self._due_bytes += more * self._request_bytes
        if self._due_bytes:
            begin = self._position
            try:
                sent = self.socket.send(self._block[begin : begin + self._due_bytes])
            except BlockingIOError:
                sent = 0
            self._due_bytes -= sent
            self._position = (begin + sent) % self._request_bytes
            if self._due_bytes:
                return select.EPOLLIN | select.EPOLLOUT
        return select.EPOLLIN if self._to_come_bytes else 0


class _Fetching:
    """A connection that asks for the next bytes when it has the last ones."""

    def __init__(self, connection: socket.socket, requests: list[bytes], least_bytes: int) -> None:
        self.socket = connection
        self._requests = iter(requests)
        self._least_bytes = least_bytes
        self._left_bytes = 0  # of the answer that is coming in
        self._scratch = bytearray(_RECEIVE_BYTES)

    def turn(self, event: int) -> int:
        if event:
            size = self.socket.recv_into(self._scratch)
            if not self._left_bytes:
                self._left_bytes = _LENGTH.unpack_from(self._scratch)[0] + 4
                if size < 4 or self._left_bytes < self._least_bytes:
                    raise RuntimeError(f"an answer of {self._left_bytes} bytes ({size} read)")
            self._left_bytes -= size
        if not self._left_bytes:
            request = next(self._requests, None)
            if request is None:
                return 0
            self.socket.send(request)
        return select.EPOLLIN
