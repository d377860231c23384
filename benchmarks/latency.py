"""The time from a producer's send to a consumer's receipt, at 1,000 records a second."""

from __future__ import annotations

import select
import socket
import statistics
import time
from collections import deque
from functools import partial
from typing import NamedTuple

from benchmarks import load
from benchmarks.brokers import HOST, TIMEOUT_S, Server, Topic
from benchmarks.contest import Contest, contest, lower
from benchmarks.load import FETCH, FETCH_VERSION, PRODUCE, PRODUCE_VERSION
from benchmarks.measure import Bench, Figure
from benchmarks.produce import ONE_RECORD
from ottla.protocol import frame

_RECORDS_PER_S = 1_000
_MAX_WAIT_MS = 500
_MAX_BYTES = 1 << 20
_MEMORY_BYTES = 64 << 20  # more than is ever written here
_RECEIVE_BYTES = 64 << 10


class Latency(NamedTuple):
    """Of one run, in milliseconds."""

    median_ms: float
    p99_ms: float


def run(bench: Bench) -> list[Figure]:
    with contest(bench, _MEMORY_BYTES) as between:
        found = between.race(partial(_measure, between, bench.scale.broker.latency_records))
    what = f"end to end at {_RECORDS_PER_S:,} records/s"
    return [
        lower(f"{what}: median", [latency.median_ms for latency in found], "ms", 1),
        lower(f"{what}: 99th percentile", [latency.p99_ms for latency in found], "ms", 0.5),
    ]


def _measure(between: Contest, records: int, server: Server) -> Latency:
    with server.topic(1) as topic:
        taken = sorted(between.pool.submit(send_and_receive, topic, records).result())
    return Latency(1e3 * statistics.median(taken), 1e3 * taken[len(taken) * 99 // 100])


def send_and_receive(topic: Topic, records: int) -> list[float]:
    """Seconds for each record. It is sent when it is due, whatever has happened to those before."""
    batch = bytes(ONE_RECORD.batch())
    request = load.encoded(PRODUCE, PRODUCE_VERSION, load.produce_request(topic, 0, batch))
    producer = load.first_batch(topic, 0, batch)
    producer.setblocking(False)
    with producer, _Consumer(topic, len(batch)) as consumer:
        latencies: list[float] = []
        sent: deque[float] = deque()
        begin = time.perf_counter()
        due = 0
        while len(latencies) < records:
            wait_s = TIMEOUT_S if due == records else begin + due / _RECORDS_PER_S - time.perf_counter()
            # Not epoll: that waits for whole milliseconds.
            readable = select.select([producer, consumer.socket], [], [], wait_s)[0] if wait_s > 0 else []
            if consumer.socket in readable:
                arrived = time.perf_counter()
                latencies += [arrived - sent.popleft() for _ in range(consumer.receive())]
            if producer in readable:
                producer.recv(_RECEIVE_BYTES)
            if due < records and time.perf_counter() >= begin + due / _RECORDS_PER_S:
                due += 1
                sent.append(time.perf_counter())
                producer.send(request)
            elif not readable and due == records:
                raise RuntimeError(f"{records - len(latencies)} records did not come")
    return latencies


class _Consumer:
    """A connection that always has a fetch under way, from the second record on."""

    def __init__(self, topic: Topic, batch_bytes: int) -> None:
        self.socket = socket.create_connection((HOST, topic.port), TIMEOUT_S)
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._offset = 1
        self._buffer = bytearray()
        self._ask()

    def __enter__(self) -> _Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _ask(self) -> None:
        request = load.fetch_request(self._topic, self._offset, _MAX_BYTES, _MAX_WAIT_MS)
        self.socket.send(load.encoded(FETCH, FETCH_VERSION, request))

    def receive(self) -> int:
        """How many records have come now."""
        self._buffer += self.socket.recv(_RECEIVE_BYTES)
        if len(self._buffer) < 4 or len(self._buffer) < 4 + int.from_bytes(self._buffer[:4]):
            return 0
        _, answer = frame.decode_response(FETCH, FETCH_VERSION, bytes(self._buffer[4:]))
        self._buffer.clear()
        (partition,) = answer.responses[0].partitions
        if partition.error_code:
            raise RuntimeError(f"fetching {self._topic.name} failed: error {partition.error_code}")
        count = len(partition.records or b"") // self._batch_bytes
        self._offset += count
        self._ask()
        return count
