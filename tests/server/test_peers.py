"""What brokers ask of each other is answered, or known not to be: by a broker that is slow, gone, or back again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cluster.image import BrokerInfo
from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.server.peers import Peers

HOST, NODE, KEY, VERSION = "127.0.0.1", 2, 27, 1

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A broker that answers each request with its producer id."""
    while True:
        size = int.from_bytes(await reader.readexactly(4), "big")
        data = await reader.readexactly(size)
        header = frame.RequestHeader.parse(data)
        asked: Any = frame.decode_request(header, data)
        result = WritableTxnMarkerResult(producer_id=asked.markers[0].producer_id)
        response = WriteTxnMarkersResponse(markers=[result])
        writer.write(b"".join(frame.response_parts(KEY, VERSION, header.correlation_id, response)))


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(4)
    writer.write(b"\xff" * 100)
    await reader.read()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(4)


class Other:
    """Another broker, whose behaviour changes; and the way to it."""

    def __init__(self, server: asyncio.Server, answer_timeout_s: float) -> None:
        self.server = server
        self.serve: Serve = answer
        self.connections = 0
        self.port = server.sockets[0].getsockname()[1]
        metadata: Any = SimpleNamespace(image=SimpleNamespace(brokers={}))
        self.brokers: dict[int, BrokerInfo] = metadata.image.brokers
        self.brokers[NODE] = BrokerInfo(NODE, HOST, self.port)
        self.peers = Peers(metadata, answer_timeout_s)

    def ask(self, producer_id: int, node_id: int = NODE) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request: Message = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=producer_id)])
        self.peers.send(node_id, VERSION, request, future.set_result)
        return future


@asynccontextmanager
async def other_broker(answer_timeout_s: float = 60.0) -> AsyncIterator[Other]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other.connections += 1
        try:
            await other.serve(reader, writer)
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, HOST, 0)
    other = Other(server, answer_timeout_s)
    yield other
    await other.peers.close()
    server.close()


def producer_ids(responses: list[Any]) -> list[int]:
    return [response.markers[0].producer_id for response in responses]


def test_requests_go_over_one_connection_and_are_answered_in_order() -> None:
    async def work() -> None:
        async with other_broker() as other:
            first = [other.ask(number) for number in range(20)]
            assert producer_ids(await asyncio.gather(*first)) == list(range(20))
            assert producer_ids([await other.ask(99)]) == [99]
            assert other.connections == 1

    asyncio.run(work())


@pytest.mark.parametrize("bad", [silence, nonsense, hang_up])
def test_a_broker_that_does_not_answer_is_given_up_and_asked_anew_when_it_is_well(bad: Serve) -> None:
    async def work() -> None:
        async with other_broker(answer_timeout_s=1) as other:
            other.serve = bad
            assert await asyncio.gather(*(other.ask(number) for number in range(3))) == [None] * 3
            other.serve = answer
            other.peers._answer_timeout_s = 60.0  # that was patience enough, and this must not be too little
            assert producer_ids([await other.ask(7)]) == [7]
            assert other.connections == 2

    asyncio.run(work())


def test_an_idle_connection_is_kept() -> None:
    async def work() -> None:
        async with other_broker(answer_timeout_s=1) as other:
            assert producer_ids([await other.ask(1)]) == [1]
            await asyncio.sleep(1.2)
            assert producer_ids([await other.ask(2)]) == [2]
            assert other.connections == 1

    asyncio.run(work())


def test_a_broker_that_is_not_there_does_not_answer_and_one_that_moved_is_found() -> None:
    async def work() -> None:
        async with other_broker() as other:
            assert await other.ask(1, node_id=3) is None
            other.brokers[NODE] = BrokerInfo(NODE, HOST, 1)  # nobody listens there
            assert await other.ask(1) is None
            other.brokers[NODE] = BrokerInfo(NODE, HOST, other.port)
            assert producer_ids([await other.ask(1)]) == [1]

    asyncio.run(work())


def test_whoever_waits_when_all_ends_is_told() -> None:
    async def work() -> None:
        async with other_broker() as other:
            other.serve = silence
            waiting = other.ask(1)
            await asyncio.sleep(0)
            await other.peers.close()
            assert await waiting is None

    asyncio.run(work())
