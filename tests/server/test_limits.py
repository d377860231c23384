"""What one client, or many, may take from the broker: connections, time, memory for answers."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from ottla.protocol import frame
from ottla.server.listener import LOCAL_SEND_BYTES
from ottla.testing.embedded import EmbeddedBroker
from tests.server.conftest import TOPIC
from tests.server.wire import FETCH, PRODUCE, TIMEOUT_S, Wire, fetch, produce, records, wait_until

MIB = 1 << 20
MINUTE_MS = 60_000


def connections(broker: EmbeddedBroker) -> int:
    return broker.call(lambda: broker.broker.listener.connections)


@pytest.mark.parametrize(
    "settings",
    [
        {"max.connections": 3},
        {"max.connections.per.ip": 3},
        {"max.connections.per.ip.overrides": "127.0.0.1:3"},
    ],
)
def test_no_more_connections_than_allowed(
    settings: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedBroker(settings) as broker:
        good = [Wire(broker) for _ in range(3)]
        for wire in good:
            wire.ping()
        with Wire(broker) as refused:
            assert refused.is_closed()
            assert (
                f"refusing a connection from {refused.name}: 3 are open, 3 of them from there" in caplog.text
            )
        good.pop().socket.close()
        wait_until(lambda: connections(broker) == 2)
        with Wire(broker) as next_one:
            next_one.ping()
        for wire in good:
            wire.ping()
            wire.socket.close()
        assert broker.broker.metrics.connections_refused == 1


def test_a_flood_of_connections_does_not_keep_a_good_client_out(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker({"max.connections.per.ip.overrides": "127.0.0.1:40"}) as broker, Wire(broker) as good:
        good.ping()
        flood = [Wire(broker) for _ in range(200)]
        good.ping()
        wait_until(lambda: broker.broker.metrics.connections_refused == 161 and connections(broker) <= 40)
        broker.clock.advance(MINUTE_MS)
        lines = caplog.text.count("refusing a connection")
        assert lines < 10  # the log is not flooded too: one for every few seconds
        assert sum(map(int, re.findall(r"refused (\d+) more connections", caplog.text))) == 161 - lines
        for wire in flood:
            wire.socket.close()
        wait_until(lambda: connections(broker) == 1)
        good.ping()


def test_a_connection_that_is_accepted_while_the_broker_ends_is_ended_too(broker: EmbeddedBroker) -> None:
    listener = broker.broker.listener

    def connect_and_end() -> Wire:
        wire = Wire(broker)  # in the system's queue: the loop accepts it when this turn is over
        asyncio.get_running_loop().call_soon(listener.abort)  # before the new one hears of itself
        return wire

    with broker.call(connect_and_end) as late:
        assert late.is_closed()
    assert connections(broker) == 0


def test_an_idle_connection_is_closed_and_one_that_is_used_is_not(broker: EmbeddedBroker) -> None:
    with Wire(broker) as idle, Wire(broker) as used:
        for wire in (idle, used):
            wire.ping()
        broker.clock.advance(6 * MINUTE_MS)
        used.ping()
        broker.clock.advance(6 * MINUTE_MS)
        assert idle.is_closed()
        used.ping()


def test_a_connection_that_never_says_anything_is_closed(broker: EmbeddedBroker) -> None:
    with Wire(broker) as silent:
        wait_until(lambda: connections(broker) == 1)
        broker.clock.advance(11 * MINUTE_MS)
        assert silent.is_closed()


def test_a_client_that_waits_for_records_is_not_idle(broker: EmbeddedBroker, wire: Wire) -> None:
    wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=60 * MINUTE_MS))
    wait_until(lambda: broker.call(lambda: broker.broker.replicas.purgatories.fetch.delayed) == 1)
    broker.clock.advance(30 * MINUTE_MS)
    with Wire(broker) as other:
        other.ask(PRODUCE, 9, produce(TOPIC, records(b"at last")))
    assert wire.receive(FETCH, 12)[1].responses[0].partitions[0].high_watermark == 1


def test_idle_connections_stay_where_the_setting_says_so() -> None:
    with EmbeddedBroker({"connections.max.idle.ms": -1}) as broker, Wire(broker) as wire:
        wire.ping()
        broker.clock.advance(10_000 * MINUTE_MS)
        wire.ping()


def test_a_client_that_stops_sending_but_still_listens_gets_what_it_asked_for(broker: EmbeddedBroker) -> None:
    with Wire(broker) as wire:
        wire.send(FETCH, 12, fetch(TOPIC))
        assert wire.receive(FETCH, 12)[1].error_code == 0
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.is_closed()
    wait_until(lambda: connections(broker) == 0)


# -- clients that do not read


def held_bytes(broker: EmbeddedBroker) -> int:
    """Answers that wait in the broker for clients to take them."""
    sessions = list(broker.broker.listener._sessions)
    return sum(s._transport.get_write_buffer_size() + s._outbox.size_bytes for s in sessions if s._transport)


ASKED = b"".join(frame.request_parts(FETCH, 12, 1, "w", fetch(TOPIC)))


@pytest.fixture
def wordy(broker: EmbeddedBroker) -> EmbeddedBroker:
    """A broker whose answer to `ASKED` has 900 KB."""
    with Wire(broker) as wire:
        wire.ask(PRODUCE, 9, produce(TOPIC, records(bytes(900_000))))
    wait_until(lambda: connections(broker) == 0)
    return broker


def test_a_client_that_never_reads_does_not_make_the_broker_hold_its_answers(
    wordy: EmbeddedBroker, neighbour: Wire
) -> None:
    with Wire(wordy, receive_buffer_bytes=4096) as deaf:
        deaf.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            deaf.send_bytes(ASKED * 300_000)
        handled = wordy.broker.metrics.requests[FETCH].count
        assert handled < 500, "most are not even looked at"
        assert wordy.call(lambda: held_bytes(wordy)) < 4 * MIB
        neighbour.ping()
        deaf.socket.settimeout(TIMEOUT_S)
        for _ in range(handled + 10):  # it may change its mind, and then all goes on
            deaf.read_frame()


def test_a_client_that_asks_and_goes_away_does_not_keep_the_broker_busy(
    wordy: EmbeddedBroker, neighbour: Wire
) -> None:
    with Wire(wordy) as rude:
        rude.send_bytes(ASKED * 5_000)
    wait_until(lambda: connections(wordy) == 1)
    assert wordy.broker.metrics.requests[FETCH].count < 1_000


def test_a_client_that_never_reads_is_closed_in_the_end(wordy: EmbeddedBroker) -> None:
    with Wire(wordy, receive_buffer_bytes=4096) as deaf:
        deaf.send_bytes(ASKED * 20)
        wait_until(lambda: wordy.call(lambda: held_bytes(wordy)) > 64 << 10)
        wordy.clock.advance(11 * MINUTE_MS)
        wordy.clock.advance(6_000)
        wait_until(lambda: connections(wordy) == 0)


def test_what_a_full_broker_has_not_read_is_not_taken_for_slowness(wordy: EmbeddedBroker) -> None:
    """The rest of the client's requests waits because of the broker: the deadline for a request does not run."""
    with Wire(wordy, receive_buffer_bytes=4096) as deaf:
        deaf.send_bytes(ASKED * 20)
        wait_until(lambda: wordy.call(lambda: held_bytes(wordy)) > 64 << 10)
        wordy.clock.advance(5 * MINUTE_MS)
        for _ in range(20):
            deaf.read_frame()


def buffers(of: socket.socket) -> list[int]:
    return [of.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]


def test_connections_have_the_buffers_that_are_set() -> None:
    settings = {"socket.send.buffer.bytes": 30_000, "socket.receive.buffer.bytes": 20_000}
    with EmbeddedBroker(settings) as broker, Wire(broker) as wire:
        wire.ping()
        (session,) = broker.broker.listener._sessions
        assert session._transport is not None
        accepted = session._transport.get_extra_info("socket")
        assert buffers(accepted) == [60_000, 40_000]  # Linux doubles them, to have room for its own notes


@pytest.mark.parametrize(
    "settings", [{}, {"socket.send.buffer.bytes": -1, "socket.receive.buffer.bytes": -1}]
)
def test_otherwise_the_system_chooses_the_buffers_but_sends_to_this_machine_from_a_small_one(
    settings: dict[str, object],
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as usual, EmbeddedBroker(settings) as broker:
        listener = broker.broker.listener
        assert listener._server is not None
        (listening,) = listener._server.sockets
        assert buffers(listening) == [2 * LOCAL_SEND_BYTES, buffers(usual)[1]]
        with socket.create_server(("0.0.0.0", 0)) as for_all:
            listener._set_buffers(for_all)
            assert buffers(for_all) == buffers(usual)
