"""What brokers ask of each other: one connection to each, requests on it in order, answers as they come.

There are few such requests (markers of transactions, questions about them), and each is asked again by whoever asked
if there is no answer. So a connection that fails just ends, with everything that waits on it; so does one on which an
answer takes too long.
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

_MAX_ANSWER_BYTES = 16 << 20

Done = Callable[[Any], None]


class Peers:
    """The other brokers of the cluster."""

    def __init__(self, metadata: Metadata, answer_timeout_s: float) -> None:
        self._metadata = metadata
        self._answer_timeout_s = answer_timeout_s
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
            link = _Link(broker.host, broker.port, self._answer_timeout_s, lambda: self._ended(place))
            self._links[place] = link
        link.send(version, request, done)

    def _ended(self, place: tuple[int, str, int]) -> None:
        self._links.pop(place, None)

    async def close(self) -> None:
        for link in list(self._links.values()):
            await link.close()


class _Link:
    """A connection, from the first request on it to its end."""

    def __init__(self, host: str, port: int, answer_timeout_s: float, ended: Callable[[], None]) -> None:
        self._host = host
        self._port = port
        self._answer_timeout_s = answer_timeout_s
        self._ended = ended
        self._unsent: deque[bytes] = deque()
        self._waiting: deque[tuple[int, int, int, Done]] = deque()
        self._correlation_id = 0
        self._writer: asyncio.StreamWriter | None = None
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None  # while there is an answer to wait for
        self._task = self._loop.create_task(self._run())

    def send(self, version: int, request: Message, done: Done) -> None:
        self._correlation_id += 1
        key = request.API_KEY
        parts = frame.request_parts(key, version, self._correlation_id, "ottla-peer", request)
        self._waiting.append((key, version, self._correlation_id, done))
        if self._alarm is None:
            self._set_alarm()
        data = b"".join(parts)
        if self._writer is None:
            self._unsent.append(data)
        else:
            self._writer.write(data)

    def _set_alarm(self) -> None:
        """The oldest request must be answered in time."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = (
            self._loop.call_later(self._answer_timeout_s, self._task.cancel) if self._waiting else None
        )

    async def _run(self) -> None:
        reason: object = "no answer in time"
        try:
            reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.writelines(self._unsent)
            self._unsent.clear()
            while True:
                await self._receive(reader)
        except (OSError, EOFError, DecodeError) as error:
            reason = error
        finally:
            _logger.info("the connection to %s:%s has ended: %s", self._host, self._port, reason)
            self._end()

    def _end(self) -> None:
        self._ended()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._writer is not None:
            self._writer.transport.abort()
        while self._waiting:
            self._waiting.popleft()[3](None)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > _MAX_ANSWER_BYTES or not self._waiting:
            raise DecodeError(f"an answer of {size} bytes that nobody waits for")
        answer = await reader.readexactly(size)
        key, version, correlation_id, done = self._waiting[0]
        answered_id, response = frame.decode_response(key, version, answer)
        if answered_id != correlation_id:
            raise DecodeError(f"the answer to request {answered_id}, not {correlation_id}")
        self._waiting.popleft()
        self._set_alarm()
        done(response)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))
