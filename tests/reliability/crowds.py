"""Many at once: idle connections, partitions, producers and consumers, clients that never read their answers.

Each case is a broker process of its own. Its memory (pages of its own, not those of files) must stay within what is
said here, and another client must be served meanwhile. `make soak` prints what was measured.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ottla.protocol import frame
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.reliability.child import Child
from tests.reliability.crowd_clients import converse
from tests.reliability.ledger import Entry, Sender, check, summary, value_of
from tests.reliability.reading import read_partition
from tests.reliability.scenarios import Case
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records

IDLE_CONNECTIONS = 5_000
PARTITIONS = 2_000
PRODUCERS = CONSUMERS = 200
DEAF_CLIENTS = 50

MIB = 1 << 20
IDLE_CONNECTION_BYTES = 8 << 10  # what one may cost the broker;
DEAF_CLIENT_BYTES = MIB
PING_S = 1.0  # what another client may wait, in the middle, on a machine that has other work too

_METADATA, _CREATE_TOPICS = 3, 19
_PARTITIONS_AT_ONCE = 500
_SPARE_FILES = 200


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """The full crowds, or a `share` of each. There is no chance in them, so the seed changes nothing."""

    def sized(count: int) -> int:
        return max(1, int(count * share))

    plan: list[tuple[str, Callable[[Child], None]]] = [
        ("idle connections", partial(_idle_connections, count=sized(IDLE_CONNECTIONS))),
        ("partitions", partial(_partitions, count=sized(PARTITIONS))),
        ("producers and consumers", partial(_producers_and_consumers, count=sized(PRODUCERS))),
        ("deaf clients", partial(_deaf_clients, count=sized(DEAF_CLIENTS))),
    ]
    for name, check_crowd in plan:
        yield Case(name, name, partial(_with_broker, check_crowd))


def _with_broker(check_crowd: Callable[[Child], None]) -> None:
    _raise_open_file_limit(IDLE_CONNECTIONS + _SPARE_FILES)
    with tempfile.TemporaryDirectory(prefix="ottla-crowd-") as directory:
        broker = Child(Path(directory) / "data")
        try:
            broker.start()
            check_crowd(broker)
        finally:
            broker.close()


def _raise_open_file_limit(needed: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < needed:
        raise RuntimeError(
            f"this needs {needed} open files, and no more than {most} are allowed (ulimit -Hn)"
        )


def create_topic(broker: Child, name: str, partitions: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with Wire(broker) as wire:
        answer = wire.ask(_CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


def _ping_s(broker: Child) -> float:
    """How long a client that comes now waits for a record to be taken, in the middle."""
    times = []
    with Wire(broker) as wire:
        for _ in range(50):
            began = time.monotonic()
            answer = wire.ask(PRODUCE, 9, produce("pings", records(b"ping")))
            times.append(time.monotonic() - began)
            assert answer.responses[0].partition_responses[0].error_code == 0
    took_s = statistics.median(times)
    assert took_s < PING_S, f"another client waits {took_s * 1000:.1f} ms"
    return took_s


def _idle_connections(broker: Child, count: int) -> None:
    create_topic(broker, "pings", 1)
    alone_s = _ping_s(broker)
    before = broker.memory_bytes()
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(count):
            wires.append(stack.enter_context(Wire(broker)))
            wires[-1].ping()  # also because few may wait to be accepted (socket.listen.backlog.size)
        grown = broker.memory_bytes() - before
        crowded_s = _ping_s(broker)
        for wire in (wires[0], wires[-1]):
            wire.ping()
    print(
        f"{count} idle connections: {grown / MIB:.1f} MiB more ({grown / count:.0f} bytes each), "
        f"{broker.memory_bytes() / MIB:.0f} MiB in all; a record is taken in {crowded_s * 1000:.2f} ms, "
        f"{alone_s * 1000:.2f} ms without them"
    )
    assert grown < count * IDLE_CONNECTION_BYTES + 4 * MIB, f"{grown} bytes more for {count} connections"


def _partitions(broker: Child, count: int) -> None:
    """Made, written to, and there after a stop and after a kill."""
    names = {}
    began = time.monotonic()
    for first in range(0, count, _PARTITIONS_AT_ONCE):
        name = f"many-{first}"
        names[name] = min(_PARTITIONS_AT_ONCE, count - first)
        create_topic(broker, name, names[name])
    created_s = time.monotonic() - began
    for round_number in range(2):
        for name, partitions in names.items():
            produce_to_all(broker, name, partitions, round_number)
    memory = broker.memory_bytes()
    broker.stop()
    began = time.monotonic()
    broker.start()
    clean_s = time.monotonic() - began
    _check_all(broker, names, rounds=2)
    for name, partitions in names.items():
        produce_to_all(broker, name, partitions, 2)
    broker.kill()
    began = time.monotonic()
    broker.start()
    killed_s = time.monotonic() - began
    _check_all(broker, names, rounds=3)
    print(
        f"{count} partitions: made in {created_s:.1f} s, {memory / MIB:.0f} MiB of memory, "
        f"{broker.open_files()} open files, up again in {clean_s:.1f} s after a stop, "
        f"in {killed_s:.1f} s after a kill"
    )


def produce_to_all(broker: Child, name: str, partitions: int, number: int) -> None:
    data = [
        PartitionProduceData(index=index, records=memoryview(records(value_of(f"{name}-{index}", number))))
        for index in range(partitions)
    ]
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=name, partition_data=data)]
    )
    with Wire(broker) as wire:
        wire.socket.settimeout(60)
        (answer,) = wire.ask(PRODUCE, 9, request).responses
    assert [(p.error_code, p.base_offset) for p in answer.partition_responses] == [(0, number)] * partitions


def _check_all(broker: Child, names: dict[str, int], rounds: int) -> None:
    with Wire(broker) as wire:
        for name, partitions in names.items():
            for index in range(partitions):
                sender = f"{name}-{index}"
                expected = [Entry(number, sender, number) for number in range(rounds)]
                assert read_partition(wire, name, index) == expected, sender


def _producers_and_consumers(broker: Child, count: int) -> None:
    """As many producers as consumers; ten of each share a partition, and each consumer gets all of it."""
    partitions = max(1, count // 10)
    create_topic(broker, "busy", partitions)
    create_topic(broker, "pings", 1)
    began = time.monotonic()
    senders, reads = converse(broker, "busy", partitions, producers=count, consumers=count)
    took_s = time.monotonic() - began
    for partition, entries in reads:
        mine: dict[str, Sender] = senders[partition]
        findings = check(mine, entries)
        assert not findings, f"busy-{partition}:\n{summary(findings)}"
        assert len(entries) == sum(sender.sent for sender in mine.values())
    sent = sum(sender.sent for mine in senders.values() for sender in mine.values())
    print(
        f"{count} producers and {count} consumers: {sent} records sent and {sum(len(r) for _, r in reads)} read "
        f"in {took_s:.1f} s, {broker.memory_bytes() / MIB:.0f} MiB of memory"
    )
    _ping_s(broker)


def _deaf_clients(broker: Child, count: int) -> None:
    """Half of them ask for records, half for a long answer about topics; none reads."""
    create_topic(broker, "pings", 1)
    create_topic(broker, "wide", 400)
    create_topic(broker, "big", 1)
    with Wire(broker) as wire:
        for _ in range(4):
            wire.ask(PRODUCE, 9, produce("big", records(bytes(500_000))))
    _ping_s(broker)
    before = broker.memory_bytes()
    asked = [
        b"".join(frame.request_parts(_METADATA, 9, 1, "deaf", MetadataRequest(topics=None))),
        b"".join(frame.request_parts(FETCH, 12, 1, "deaf", fetch("big"))),
    ]
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker, receive_buffer_bytes=4096)) for _ in range(count)]
        for number, wire in enumerate(wires):
            _shout(wire, asked[number % 2])
        broker.wait_until_idle()  # it answers until nothing more fits into the kernel's buffers
        took_s = _ping_s(broker)
        grown = broker.memory_bytes() - before
    print(
        f"{count} clients that never read: {grown / MIB:.1f} MiB more, {broker.memory_bytes() / MIB:.0f} MiB in all; "
        f"a record is taken in {took_s * 1000:.2f} ms"
    )
    assert grown < count * DEAF_CLIENT_BYTES, f"{grown} bytes more for {count} clients"


def _shout(wire: Wire, asked: bytes) -> None:
    """Send requests until the broker takes no more for a while, or for as long as it does."""
    wire.socket.settimeout(0.05)
    with contextlib.suppress(TimeoutError):
        wire.send_bytes(asked * (2 * MIB // len(asked)))
