"""What brokers ask of each other: one connection to each, requests on it in order, answers as they come.

There are few such requests (markers of transactions, questions about them), and each is asked again by whoever asked
if there is no answer. So a connection that fails just ends, with everything that waits on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.cluster.metadata import Metadata
from ottla.protocol import frame
from ottla.protocol.codec import DecodeError
from ottla.protocol.message import Message

_logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 16 << 20

Done = Callable[[Any], None]


class Peers:
    """The other brokers of the cluster."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._links: dict[tuple[int, str, int], _Link] = {}

    def send(self, node_id: int, version: int, request: Message, done: Done) -> None:
        """Ask a broker; `done` with its response, or with None if there is none."""
        broker = self._metadata.image.brokers.get(node_id)
        if broker is None:
            done(None)
            return
        place = (node_id, broker.host, broker.port)
        link = self._links.get(place)
        if link is None:
            link = self._links[place] = _Link(broker.host, broker.port, lambda: self._links.pop(place, None))
        link.send(version, request, done)

    async def close(self) -> None:
        for link in list(self._links.values()):
            await link.close()


class _Link:
    """A connection, from the first request on it to its end."""

    def __init__(self, host: str, port: int, ended: Callable[[], object]) -> None:
        self._host = host
        self._port = port
        self._ended = ended
        self._unsent: deque[bytes] = deque()
        self._waiting: deque[tuple[int, int, int, Done]] = deque()
        self._correlation_id = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, version: int, request: Message, done: Done) -> None:
        self._correlation_id += 1
        key = request.API_KEY
        parts = frame.request_parts(key, version, self._correlation_id, "ottla-peer", request)
        self._waiting.append((key, version, self._correlation_id, done))
        data = b"".join(parts)
        if self._writer is None:
            self._unsent.append(data)
        else:
            self._writer.write(data)

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.writelines(self._unsent)
            self._unsent.clear()
            while True:
                await self._receive(reader)
        except (OSError, EOFError, TimeoutError, DecodeError) as error:
            _logger.info("the connection to %s:%s has ended: %s", self._host, self._port, error)
        finally:
            self._ended()
            if self._writer is not None:
                self._writer.close()
            while self._waiting:
                self._waiting.popleft()[3](None)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        first = await reader.readexactly(1)  # for as long as there is nothing to wait for
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            size = int.from_bytes(first + await reader.readexactly(3), "big")
            if size > _MAX_ANSWER_BYTES or not self._waiting:
                raise DecodeError(f"an answer of {size} bytes that nobody waits for")
            answer = await reader.readexactly(size)
        key, version, correlation_id, done = self._waiting[0]
        answered_id, response = frame.decode_response(key, version, answer)
        if answered_id != correlation_id:
            raise DecodeError(f"the answer to request {answered_id}, not {correlation_id}")
        self._waiting.popleft()
        done(response)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))
