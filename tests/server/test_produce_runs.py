"""Requests that come together are answered and written exactly as if they had come one after another."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.api.access import Operation, Resource
from ottla.names import TopicPartition
from ottla.protocol import frame
from ottla.protocol.buffers import MemoryBudget, ReceiveBuffers
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.records.compression.codec import Codec
from ottla.server.dispatch import Dispatcher
from ottla.server.listener import Listener
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.log.batch_run import MAX_BATCHES
from tests.api.world import Refusing, World
from tests.disks.faults import Fault, FaultyFileSystem
from tests.fuzz.server_target import Transport
from tests.server.wire import API_VERSIONS, FETCH, PRODUCE, api_versions, fetch, produce, records

TOPIC = "orders"
NOW_MS = 1_700_000_000_000


class Broker:
    """A broker and one connection to it."""

    def __init__(self, *, has_runs: bool, fs: FileSystem | None = None, **properties: str) -> None:
        self.data = tempfile.mkdtemp(prefix="ottla-runs-")
        self.world = World(f"{self.data}/data", queued=True, fs=fs, **properties)
        self.world.runtime.set_clock(NOW_MS)
        self.world.make_topic(TOPIC, partitions=2)
        around = None if has_runs else self._one_by_one
        self._ns = 0
        dispatcher = Dispatcher(self.world.services, self._clock_ns, around)
        buffers = ReceiveBuffers(MemoryBudget(4 << 20, 1 << 20))
        self._listener = Listener(dispatcher, self.world.config, buffers)
        self.transport: Any = Transport()
        self.session: Any = self._listener._session()
        self.transport.session = self.session
        self.session.connection_made(self.transport)  # type: ignore[arg-type]
        # The first append of a log goes by a thread; here it is out of the way.
        for partition in (0, 1):
            self.receive(request(plain(b"first"), partition=partition))

    def _clock_ns(self) -> int:
        self._ns += 1000
        return self._ns

    def _one_by_one(self, route: Any, call: Any) -> Any:
        return route.handle(self.world.services, call, call.request)

    def receive(self, data: bytes) -> bytes:
        """What is answered to these bytes."""
        before = len(self.transport.written)
        while data and not self.transport.is_closed:
            buffer = self.session.get_buffer(0)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            self.session.buffer_updated(size)
            data = data[size:]
            self.world.runtime.run_pending()
        self.world.runtime.advance(100)  # past every wait
        self.world.runtime.run_pending()
        return bytes(self.transport.written[before:])

    def end_offset(self, partition: int = 0) -> int:
        found = self.world.replicas.partition(TopicPartition(TOPIC, partition))
        assert found is not None
        log = found.log
        assert log is not None
        return log.end_offset

    def files(self, pattern: str) -> dict[str, bytes]:
        """What lies in the logs."""
        found = Path(f"{self.data}/data").glob(f"{TOPIC}-*/{pattern}")
        return {str(path.relative_to(self.data)): path.read_bytes() for path in found}

    def close(self) -> None:
        self._listener.abort()
        self.world.close()
        shutil.rmtree(self.data)


def plain(*values: bytes, **fields: Any) -> bytes:
    return records(*values, timestamp=NOW_MS, **fields)


def request(
    data: bytes, *, version: int = 12, correlation_id: int = 1, acks: int = -1, partition: int = 0
) -> bytes:
    message: Message = produce(TOPIC, data, acks=acks, partition=partition)
    return b"".join(frame.request_parts(PRODUCE, version, correlation_id, "wire", message))


def other(api_key: int, version: int, message: Message) -> bytes:
    return b"".join(frame.request_parts(api_key, version, 5, "wire", message))


@pytest.fixture
def broker() -> Any:
    broker = Broker(has_runs=True)
    yield broker
    broker.close()


def answers(data: bytes, version: int = 12) -> list[tuple[int, int, int]]:
    """Correlation id, error and base offset of each."""
    found = []
    while data:
        size = int.from_bytes(data[:4])
        correlation_id, message = frame.decode_response(PRODUCE, version, data[4 : 4 + size])
        (part,) = message.responses[0].partition_responses
        found.append((correlation_id, part.error_code, part.base_offset))
        data = data[4 + size :]
    return found


def test_requests_that_come_together_are_written_at_once_and_answered_each(broker: Broker) -> None:
    writes = broker.world.metrics.topic(TOPIC).produce_requests
    stream = b"".join(request(plain(b"a", b"b"), correlation_id=number) for number in range(5))
    assert answers(broker.receive(stream)) == [(number, 0, 1 + 2 * number) for number in range(5)]
    metrics = broker.world.metrics.topic(TOPIC)
    assert metrics.produce_requests - writes == 5
    assert metrics.messages_in == 2 + 10  # and the first of each partition
    assert broker.end_offset() == 11


def test_more_requests_than_fit_into_one_run_are_several_runs(broker: Broker) -> None:
    count = 3 * MAX_BATCHES + 1
    stream = b"".join(request(plain(b"a"), correlation_id=number) for number in range(count))
    assert answers(broker.receive(stream)) == [(number, 0, 1 + number) for number in range(count)]


def test_a_bad_request_among_good_ones_fails_alone(broker: Broker) -> None:
    bad = bytearray(plain(b"bad"))
    bad[-1] ^= 1
    stream = request(plain(b"a")) + request(bytes(bad)) + request(plain(b"b"))
    assert answers(broker.receive(stream)) == [(1, 0, 1), (1, ErrorCode.CORRUPT_MESSAGE, -1), (1, 0, 2)]


def test_a_producer_that_sends_again_gets_the_first_answers(broker: Broker) -> None:
    def sent(sequence: int) -> bytes:
        return request(plain(b"a", producer_id=9, producer_epoch=0, base_sequence=sequence))

    assert answers(broker.receive(b"".join(map(sent, range(6))))) == [(1, 0, 1 + n) for n in range(6)]
    again = broker.receive(sent(4) + sent(5) + sent(6) + sent(8) + sent(7))
    unordered = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert answers(again) == [(1, 0, 5), (1, 0, 6), (1, 0, 7), (1, unordered, -1), (1, 0, 8)]


def test_one_who_waits_for_records_is_woken(broker: Broker) -> None:
    waiting = Transport()
    session: Any = broker._listener._session()
    waiting.session = session
    session.connection_made(waiting)
    data = other(FETCH, 12, fetch(TOPIC, 1, max_wait_ms=10_000, min_bytes=200))
    session.get_buffer(0)[: len(data)] = data
    session.buffer_updated(len(data))
    broker.world.runtime.run_pending()
    assert not waiting.written
    broker.receive(request(plain(b"a")) * 3)
    assert waiting.written


def test_nobody_writes_where_he_may_not(broker: Broker) -> None:
    broker.world.services.authorizer = Refusing((Operation.WRITE, Resource.TOPIC, TOPIC))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answers(broker.receive(request(plain(b"a")) * 3)) == [(1, refused, -1)] * 3
    assert broker.end_offset() == 1


def test_a_disk_that_fails_is_told_of_to_each() -> None:
    disk = FaultyFileSystem(RealFileSystem())
    broker = Broker(has_runs=True, fs=disk)
    try:
        (point,) = (point for point in disk.seen if "segment._write" in point.caller)
        before = disk.seen[point]
        broker.receive(request(plain(b"a")) * 3)
        assert disk.seen[point] == before + 1
        disk.fault = Fault(point, before + 1)
        told = answers(broker.receive(request(plain(b"a")) * 3))
        assert [error for _, error, _ in told] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert broker.end_offset() == 4
    finally:
        broker.close()


# -- any mixture


class Client:
    """Makes up requests: most are plain, one batch each."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._sequences: dict[tuple[int, int], int] = {}

    def _batch(self, partition: int) -> bytes:
        random = self._random
        values = [random.randbytes(random.randrange(30)) for _ in range(random.randint(1, 3))]
        kind = random.choice(["plain"] * 12 + ["damaged", "codec", "offset", "future", "large", "short"])
        fields: dict[str, Any] = {"codec": Codec.GZIP if kind == "codec" else Codec.NONE}
        if kind == "large":
            values = [b"v" * random.choice((2_000, 40_000, 70_000))]
        producer_id = random.choice((-1, -1, 7, 8))
        if producer_id >= 0:
            sequence = self._sequences.get((partition, producer_id), 0) + random.choice(
                (0, 0, 0, 0, 0, 1, -1)
            )
            fields |= {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            self._sequences[partition, producer_id] = max(0, sequence + len(values))
        timestamp = NOW_MS + random.randint(-1000, 1000) + (10**10 if kind == "future" else 0)
        data = bytearray(
            records(*values, timestamp=timestamp, base_offset=3 if kind == "offset" else 0, **fields)
        )
        if kind == "damaged":
            data[random.randrange(len(data))] ^= random.randint(1, 255)
        return bytes(data[:-1] if kind == "short" else data)

    def stream(self) -> list[bytes]:
        random = self._random
        partition, version, acks = (
            random.choice((0, 0, 1, 2)),
            random.choice((12, 12, 9, 7)),
            random.choice((-1, 1)),
        )
        made = []
        for number in range(random.randint(1, 15)):
            if random.random() < 0.06:
                made.append(random.choice(OTHERS))
            if random.random() < 0.1:
                partition, acks = random.choice((0, 1)), random.choice((-1, 1))
            made.append(
                request(
                    self._batch(partition),
                    version=version,
                    correlation_id=number,
                    acks=acks,
                    partition=partition,
                )
            )
        return made

    def pieces(self, data: bytes) -> list[bytes]:
        """The same bytes as the network might bring them."""
        cuts = sorted(self._random.randint(0, len(data)) for _ in range(self._random.choice((0, 0, 1, 3))))
        return [data[start:stop] for start, stop in pairwise([0, *cuts, len(data)])]


OTHERS = [
    other(API_VERSIONS, 3, api_versions()),
    other(FETCH, 12, fetch(TOPIC, 0, partition_max_bytes=1000)),
    other(FETCH, 12, fetch(TOPIC, 10**6, max_wait_ms=50)),
]


@pytest.mark.parametrize("seed", range(4))
def test_any_stream_is_answered_and_written_as_one_by_one(seed: int) -> None:
    client = Client(seed)
    properties: dict[str, Any] = {"log_segment_bytes": "1048576", "log_index_interval_bytes": "300"}
    together, alone = Broker(has_runs=True, **properties), Broker(has_runs=False, **properties)
    try:
        for number in range(120):
            stream = client.stream()
            told = b"".join(map(together.receive, client.pieces(b"".join(stream))))
            assert told == b"".join(map(alone.receive, stream)), f"stream {number}"
            assert together.files("*.log") == alone.files("*.log"), f"stream {number}"
        for broker in (together, alone):
            broker.world.logs.close()
        assert together.files("*[!a]") == alone.files("*[!a]")  # each topic has an id of its own
        counted, one_by_one = (broker.world.metrics for broker in (together, alone))
        for name in ("messages_in", "bytes_in", "produce_requests", "failed_produce_requests"):
            assert getattr(counted.topic(TOPIC), name) == getattr(one_by_one.topic(TOPIC), name)
        assert counted.requests[PRODUCE].count == one_by_one.requests[PRODUCE].count
    finally:
        together.close()
        alone.close()
