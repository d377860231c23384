"""What a client may rely on: answers in order, nothing lost, nothing handled after the end."""

from __future__ import annotations

import socket

import pytest

from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.server.session import MAX_WAITING_CALLS
from ottla.testing.embedded import EmbeddedBroker
from tests.server.conftest import TOPIC
from tests.server.wire import (
    API_VERSIONS,
    FETCH,
    PRODUCE,
    Wire,
    api_versions,
    fetch,
    produce,
    records,
    wait_until,
)


def end_offset(broker: EmbeddedBroker, topic: str = TOPIC) -> int:
    return broker.call(lambda: next(iter(broker.broker.logs.logs.values())).end_offset)


def test_a_record_goes_in_and_comes_out(wire: Wire) -> None:
    made = wire.ask(PRODUCE, 9, produce(TOPIC, records(b"hello")))
    assert made.responses[0].partition_responses[0].base_offset == 0
    found = wire.ask(FETCH, 12, fetch(TOPIC))
    data = bytes(found.responses[0].partitions[0].records)
    assert b"hello" in data


def test_pipelined_requests_are_answered_in_the_order_they_were_sent(wire: Wire) -> None:
    """The first waits for records that the second brings: its answer is there last, and leaves first."""
    waiting = wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=20_000))
    others = [wire.send(API_VERSIONS, 3, api_versions()) for _ in range(5)]
    made = wire.send(PRODUCE, 9, produce(TOPIC, records(b"wake")))
    correlation_id, found = wire.receive(FETCH, 12)
    assert correlation_id == waiting
    assert found.responses[0].partitions[0].high_watermark == 1
    assert [wire.receive(API_VERSIONS, 3)[0] for _ in others] == others
    assert wire.receive(PRODUCE, 9)[0] == made


def test_many_requests_in_one_packet_are_all_answered(wire: Wire) -> None:
    count = 3 * MAX_WAITING_CALLS
    frames = [frame.request_parts(API_VERSIONS, 3, i, "wire", api_versions()) for i in range(count)]
    wire.send_bytes(b"".join(b"".join(parts) for parts in frames))
    assert [wire.receive(API_VERSIONS, 3)[0] for _ in range(count)] == list(range(count))


@pytest.mark.parametrize("version", range(4))
def test_an_old_fetch_that_is_answered_at_once_does_not_stop_the_connection(wire: Wire, version: int) -> None:
    """Such a fetch may have to be converted, and then no more is read until it is."""
    asked = [wire.send(FETCH, version, fetch(TOPIC, offset)) for offset in (0, 7, 0)]
    asked.append(wire.send(API_VERSIONS, 3, api_versions()))
    assert [wire.receive(FETCH, version)[0] for _ in range(3)] == asked[:3]
    assert wire.receive(API_VERSIONS, 3)[0] == asked[3]


def test_more_waiting_requests_than_one_connection_may_have_wait_for_their_turn(
    broker: EmbeddedBroker, wire: Wire
) -> None:
    count = MAX_WAITING_CALLS + 20
    sent = [wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=60_000)) for _ in range(count)]
    with Wire(broker) as other:
        other.ask(PRODUCE, 9, produce(TOPIC, records(b"wake")))
    assert [wire.receive(FETCH, 12)[0] for _ in range(count)] == sent


@pytest.mark.parametrize("step", [1, 3, 7])
def test_a_request_may_come_in_pieces_of_any_size(wire: Wire, step: int) -> None:
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b"".join(frame.request_parts(PRODUCE, 9, 5, "wire", produce(TOPIC, records(b"slowly"))))
    for start in range(0, len(data), step):
        wire.send_bytes(data[start : start + step])
    correlation_id, made = wire.receive(PRODUCE, 9)
    assert correlation_id == 5
    assert made.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_acks_0_is_never_answered(broker: EmbeddedBroker, wire: Wire) -> None:
    wire.send(PRODUCE, 9, produce(TOPIC, records(b"one"), acks=0))
    ping = wire.send(API_VERSIONS, 3, api_versions())
    assert wire.receive(API_VERSIONS, 3)[0] == ping
    assert end_offset(broker) == 1


def test_acks_0_that_fails_closes_the_connection_and_nothing_behind_it_is_handled(
    broker: EmbeddedBroker, wire: Wire
) -> None:
    bad = frame.request_parts(PRODUCE, 9, 1, "wire", produce("missing", records(b"x"), acks=0))
    good = frame.request_parts(PRODUCE, 9, 2, "wire", produce(TOPIC, records(b"x"), acks=0))
    wire.send_bytes(b"".join([*bad, *good]))
    assert wire.is_closed()
    assert end_offset(broker) == 0


def test_what_was_answered_before_a_bad_request_still_arrives(wire: Wire) -> None:
    good = frame.request_parts(API_VERSIONS, 3, 7, "wire", api_versions())
    wire.send_bytes(b"".join(good) + b"\x00\x00\x00\x02\x00\x00")
    assert wire.receive(API_VERSIONS, 3)[0] == 7
    assert wire.is_closed()


def test_api_versions_in_a_version_of_the_future_is_answered_in_v0(wire: Wire) -> None:
    wire.send_frame(b"\x00\x12\x00\x63\x00\x00\x00\x09\x00\x04wire\x00 whatever that version may hold")
    correlation_id, response = frame.decode_response(API_VERSIONS, 0, wire.read_frame())
    assert correlation_id == 9
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in response.api_keys] == [(18, 0, 4)]
    wire.ping()


def test_a_request_waiting_for_a_client_that_left_is_forgotten(broker: EmbeddedBroker) -> None:
    with Wire(broker) as wire:
        wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=600_000))
        wait_until(lambda: waiting_fetches(broker) == 1)
    wait_until(lambda: waiting_fetches(broker) == 0)


def waiting_fetches(broker: EmbeddedBroker) -> int:
    return broker.call(lambda: broker.broker.replicas.purgatories.fetch.delayed)


def test_the_times_of_a_request_are_counted_where_they_passed(broker: EmbeddedBroker, wire: Wire) -> None:
    broker.faults.delay("ApiVersions", 30)
    wire.ping()
    wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=3_600_000))
    wait_until(lambda: waiting_fetches(broker) == 1)
    broker.clock.advance(3_600_000)
    wire.receive(FETCH, 12)
    requests = broker.broker.metrics.requests
    assert requests[FETCH].remote_ns > 3_500_000 * 1_000_000
    assert requests[FETCH].local_ns < requests[FETCH].remote_ns
    assert requests[API_VERSIONS].count == 1
    assert requests[API_VERSIONS].request_bytes > 20
    assert requests[API_VERSIONS].response_bytes > 20
