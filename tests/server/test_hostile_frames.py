"""Bytes from people who do not wish the broker well: the connection ends, the log says whose and why, others go on."""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import partial

import pytest

from ottla.protocol import frame
from ottla.testing.embedded import EmbeddedBroker
from tests.server.conftest import TOPIC
from tests.server.wire import API_VERSIONS, PRODUCE, TIMEOUT_S, Wire, produce, records, wait_until

METADATA = 3
MIB = 1 << 20


def head(api_key: int, version: int, client_id: bytes = b"\x00\x01x") -> bytes:
    return struct.pack(">hhi", api_key, version, 1) + client_id


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def received_bytes(broker: EmbeddedBroker) -> int:
    """What the unfinished requests of all connections hold."""
    return broker.call(lambda: broker.broker.listener.budget.used_bytes)


LENGTHS = {
    "2 GiB": (b"\x7f\xff\xff\xff", "a frame of"),
    "negative": (b"\x80\x00\x00\x00", "a frame of"),
    "minus one": (b"\xff\xff\xff\xff", "a frame of"),
    "one more than allowed": (struct.pack(">i", 100 * MIB + 1), "a frame of"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "this looks like TLS"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", "this looks like HTTP"),
}


@pytest.mark.parametrize(("data", "why"), LENGTHS.values(), ids=LENGTHS.keys())
def test_a_length_that_cannot_be_is_refused_before_anything_is_allocated(
    data: bytes,
    why: str,
    broker: EmbeddedBroker,
    wire: Wire,
    neighbour: Wire,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire.send_bytes(data)
    assert wire.is_closed()
    wait_until(lambda: received_bytes(broker) == 0)
    assert f"closing the connection from {wire.name}: {why}" in caplog.text


# What follows is a whole frame each: header and body. Flexible versions have one byte of tags in the header.
REQUESTS = {
    "no header": b"\x00\x12\x00",
    "nothing at all": b"",
    "client id past the end": head(METADATA, 1, b"\x7f\xff"),
    "client id that is not text": head(METADATA, 1, b"\x00\x02\xff\xfe") + bytes(4),
    "header tags past the end": head(METADATA, 12) + b"\x05",
    "header tags without end": head(METADATA, 12) + b"\xff\xff\xff\xff\xff\xff",
    "unknown API": head(1234, 0),
    "negative API": head(-1, 0),
    "unknown version": head(PRODUCE, 99),
    "negative version": head(PRODUCE, -1),
    "fields that are not there": head(API_VERSIONS, 3) + b"\x00",
    "five bytes that claim 2^32 elements": head(METADATA, 12) + b"\x00" + b"\xff\xff\xff\xff\x0f",
    "a count past the end": head(METADATA, 1) + b"\x7f\xff\xff\xff",
    "a negative count where null is not allowed": head(METADATA, 0) + b"\xff\xff\xff\xff",
    "a string past the end": head(METADATA, 1) + b"\x00\x00\x00\x01\x7f\xff",
    "a varint without end": head(METADATA, 12) + b"\x00" + b"\x80\x80\x80\x80\x80\x80",
    "millions of elements": head(METADATA, 1) + struct.pack(">i", 4 << 20) + bytes(2 * (4 << 20)),
    "millions of empty tags": head(METADATA, 12) + b"\x00\x01\x00\x00" + varint(1 << 20) + bytes(2 << 20),
    "millions of empty tags in the header": head(METADATA, 12) + varint(1 << 20) + bytes(2 << 20),
}  # fmt: skip


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_that_is_not_one_ends_its_connection(
    data: bytes, broker: EmbeddedBroker, wire: Wire, neighbour: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.send_frame(data)
    assert wire.is_closed()
    wait_until(lambda: received_bytes(broker) == 0)
    lines = [record for record in caplog.records if wire.name in record.getMessage()]
    assert len(lines) == 1
    reason = lines[0].getMessage().partition(f"closing the connection from {wire.name}: ")[2]
    assert len(reason) > 10, "it says why"
    assert lines[0].exc_info is None, "a bad request is not a defect of the broker"


def test_memory_grows_with_what_arrives_not_with_what_is_claimed(
    broker: EmbeddedBroker, wire: Wire, neighbour: Wire
) -> None:
    wire.send_bytes(struct.pack(">i", 100 * MIB) + bytes(100_000))
    wait_until(lambda: received_bytes(broker) > 0)
    neighbour.ping()
    assert received_bytes(broker) < 4 * MIB
    wire.socket.close()
    wait_until(lambda: received_bytes(broker) == 0)


def test_a_request_that_dries_up_ends_its_connection(
    broker: EmbeddedBroker, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.send_bytes(struct.pack(">i", 100 * MIB) + bytes(1000))
    wait_until(lambda: received_bytes(broker) > 0)
    broker.clock.advance(15_000)
    assert broker.broker.listener.connections == 1
    broker.clock.advance(21_000)
    assert wire.is_closed()
    assert f"closing the connection from {wire.name}: a request did not arrive in time" in caplog.text


def test_a_byte_now_and_then_does_not_keep_a_connection(broker: EmbeddedBroker, wire: Wire) -> None:
    began_ms = broker.clock.now_ms()
    wire.send_bytes(struct.pack(">i", 100 * MIB))
    wait_until(lambda: broker.broker.listener.connections == 1)
    steps = 0
    while broker.call(lambda: broker.broker.listener.connections):
        with suppress(ConnectionError):
            wire.send_bytes(b"x")
        broker.clock.advance(1_000)
        steps += 1
    assert broker.clock.now_ms() - began_ms >= 30_000
    assert steps < 40


def test_a_large_request_at_an_honest_pace_is_given_its_time(broker: EmbeddedBroker, wire: Wire) -> None:
    data = b"".join(frame.request_parts(PRODUCE, 9, 1, "w", produce(TOPIC, records(bytes(900_000)))))
    step = 160 * 1024
    for start in range(0, len(data), step):
        wire.send_bytes(data[start : start + step])
        wait_until(partial(has_arrived, broker, start + step, len(data)))
        broker.clock.advance(7_000)
    assert wire.receive(PRODUCE, 9)[1].responses[0].partition_responses[0].error_code == 0


def has_arrived(broker: EmbeddedBroker, sent: int, whole: int) -> bool:
    (session,) = broker.call(lambda: list(broker.broker.listener._sessions))
    return session._reader.partial_bytes == (sent if sent < whole else 0)


def test_connections_together_stay_within_the_budget_and_all_requests_get_through() -> None:
    settings = {"queued.max.request.bytes": 3 * MIB, "socket.request.max.bytes": 2 * MIB}
    with EmbeddedBroker(settings) as broker:
        broker.create_topic(TOPIC, config={"max.message.bytes": 2 * MIB})
        data = b"".join(frame.request_parts(PRODUCE, 9, 1, "w", produce(TOPIC, records(bytes(1_500_000)))))
        wires = [Wire(broker) for _ in range(12)]
        for wire in wires:  # the first halves are more than the budget: some are not read any more
            wire.socket.setblocking(False)
            wire.sent = wire.socket.send(data[:700_000])
        assert received_bytes(broker) <= 4 * MIB
        pending = set(wires)
        while pending:
            for wire in list(pending):
                try:
                    wire.sent += wire.socket.send(data[wire.sent : wire.sent + 100_000])
                except BlockingIOError:
                    continue
                if wire.sent == len(data):
                    pending.discard(wire)
            assert received_bytes(broker) <= 4 * MIB
        for wire in wires:
            wire.socket.settimeout(TIMEOUT_S)
            assert wire.receive(PRODUCE, 9)[1].responses[0].partition_responses[0].error_code == 0
            wire.socket.close()
