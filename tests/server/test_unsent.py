"""Answers that clients do not take hold no more memory than is allowed, and whoever reads is served meanwhile."""

from __future__ import annotations

import contextlib
import mmap
from functools import partial

from ottla.protocol.messages.metadata import MetadataRequest
from ottla.server.unsent import UnsentAnswers
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records, wait_until

METADATA = 3
MIB = 1 << 20
TOPICS = 300


class Client:
    def __init__(self, unsent: UnsentAnswers, number: int) -> None:
        self.address = f"client-{number}"
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False


def test_the_one_that_has_not_read_for_the_longest_time_is_closed_first() -> None:
    unsent = UnsentAnswers(100)
    clients = [Client(unsent, number) for number in range(4)]
    unsent.hold(clients[0], [bytes(30)])
    unsent.hold(clients[1], [bytes(30), bytearray(10)])
    unsent.hold(clients[2], [bytes(30)])
    assert unsent.used_bytes == 100
    unsent.let_go(clients[0])
    unsent.hold(clients[0], [bytes(30)])  # it has read, and is the last in the line now
    assert all(client.is_open for client in clients)
    unsent.hold(clients[3], [bytes(50)])
    assert [client.is_open for client in clients] == [True, False, False, True]
    assert unsent.used_bytes == 80


def test_one_large_answer_may_leave_and_those_behind_it_must_wait_for_that() -> None:
    unsent = UnsentAnswers(100)
    client = Client(unsent, 0)
    unsent.hold(client, [bytes(500)])
    assert client.is_open
    unsent.hold(client, [bytes(1)])
    assert not client.is_open
    assert unsent.used_bytes == 0


def test_pages_of_the_log_are_not_counted() -> None:
    unsent = UnsentAnswers(100)
    client = Client(unsent, 0)
    with mmap.mmap(-1, 4096) as pages:
        view = memoryview(pages)
        unsent.hold(client, [bytes(30), view, view[:500], memoryview(bytes(8))])
        view.release()
    assert unsent.used_bytes == 38


def test_clients_that_ask_for_large_answers_and_do_not_read_are_closed_at_the_limit() -> None:
    properties = {"queued.max.request.bytes": 8 * MIB, "socket.request.max.bytes": 4 * MIB}
    with EmbeddedBroker(properties) as broker, contextlib.ExitStack() as stack:
        for number in range(TOPICS):  # long names: much to send, and little to do for it
            broker.create_topic(f"{number:03}" * 80)
        unsent = broker.broker.listener.unsent
        assert unsent.limit_bytes == 8 * MIB // 5
        deaf = [stack.enter_context(Wire(broker, receive_buffer_bytes=4096)) for _ in range(60)]
        with Wire(broker) as good:
            for wire in deaf:
                for _ in range(10):
                    wire.send(METADATA, 9, MetadataRequest(topics=None))
                answer = good.ask(METADATA, 9, MetadataRequest(topics=None))
                assert len(answer.topics) == TOPICS
                assert broker.call(lambda: unsent.used_bytes) <= unsent.limit_bytes
        assert broker.call(lambda: unsent.used_bytes) > 0
        wait_until(lambda: broker.broker.listener.connections < 60)
        stack.close()
        wait_until(lambda: broker.call(lambda: unsent.used_bytes) == 0)


def test_records_that_a_client_does_not_read_hold_no_memory() -> None:
    with EmbeddedBroker() as broker, Wire(broker, receive_buffer_bytes=4096) as deaf:
        broker.create_topic("t")
        with Wire(broker) as wire:
            for _ in range(4):
                wire.ask(PRODUCE, 9, produce("t", records(bytes(1_000_000))))
        sent = deaf.send(FETCH, 12, fetch("t", offset=0, partition_max_bytes=8 * MIB))
        session = partial(lambda: [one for one in broker.broker.listener._sessions if one._paused_for])
        wait_until(lambda: bool(broker.call(session)))
        assert broker.call(lambda: broker.broker.listener.unsent.used_bytes) < 1000
        assert deaf.receive(FETCH, 12)[0] == sent
