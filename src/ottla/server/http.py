"""`/metrics` and `/healthz` over plain HTTP: enough for a scraper and a probe, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.metrics import Metrics

MAX_REQUEST_BYTES = 8 * 1024
READ_TIMEOUT_S = 10

log = logging.getLogger(__name__)


class HttpServer:
    """Answers GET on two paths, one request a connection."""

    def __init__(
        self,
        metrics: Metrics,
        health: Callable[[], tuple[bool, str]],
        more: Callable[[], Awaitable[bytes]],
    ) -> None:
        self._metrics = metrics
        self._health = health
        self._more = more  # lines of /metrics that take a while
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), READ_TIMEOUT_S)
            writer.write(await self._answer(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            log.debug("an HTTP request broke off")
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split()
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "text/plain", b"only GET is answered here\n")
        path = words[1].partition(b"?")[0]
        if path == b"/metrics":
            from ottla.server import (
                prometheus,
            )  # prometheus-client takes longer to import than the broker to start

            more = await self._more()
            return _response(
                "200 OK", "text/plain; version=0.0.4; charset=utf-8", prometheus.render(self._metrics) + more
            )
        if path == b"/healthz":
            healthy, text = self._health()
            return _response(
                "200 OK" if healthy else "503 Service Unavailable", "text/plain", f"{text}\n".encode()
            )
        return _response("404 Not Found", "text/plain", b"try /metrics or /healthz\n")


def _response(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
