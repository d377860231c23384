"""`/metrics` and `/healthz` over plain HTTP: enough for a scraper and a probe, and nothing else.

On a loopback address only requests to a loopback name are answered. A page in a browser on this machine can make its
own name point here (DNS rebinding), but it cannot choose the Host header.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable

from ottla.metrics import Metrics

MAX_REQUEST_BYTES = 8 * 1024
READ_TIMEOUT_S = 10

log = logging.getLogger(__name__)


class HttpServer:
    """Answers GET on two paths, one request a connection."""

    def __init__(
        self, metrics: Metrics, health: Callable[[], tuple[bool, str]], more: Callable[[], Awaitable[bytes]]
    ) -> None:
        self._metrics = metrics
        self._health = health
        self._more = more  # lines of /metrics that take a while
        self._server: asyncio.Server | None = None
        self._rendering = asyncio.Lock()
        self._open: set[asyncio.Task[None]] = set()
        self._is_local = False
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._is_local = _is_loopback(host)
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # As tasks of our own: those of asyncio's streams say so, at length, when they are cancelled by a stop.
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), READ_TIMEOUT_S)
            answer = await self._answer(head)
            writer.write(answer[: answer.index(b"\r\n\r\n") + 4] if head.startswith(b"HEAD ") else answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            log.debug("an HTTP request broke off")
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        lines = head.split(b"\r\n")
        words = lines[0].split()
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "text/plain", b"only GET is answered here\n")
        host = next((line[5:].strip() for line in lines[1:] if line[:5].lower() == b"host:"), None)
        if self._is_local and host is not None and not _is_loopback(_name(host)):
            return _response("421 Misdirected Request", "text/plain", b"ask for localhost or 127.0.0.1\n")
        path = words[1].partition(b"?")[0]
        if path == b"/metrics":
            async with self._rendering:
                body = await asyncio.to_thread(_render, self._metrics)
            body += await self._more()
            return _response("200 OK", "text/plain; version=0.0.4; charset=utf-8", body)
        if path == b"/healthz":
            healthy, text = self._health()
            return _response(
                "200 OK" if healthy else "503 Service Unavailable", "text/plain", f"{text}\n".encode()
            )
        return _response("404 Not Found", "text/plain", b"try /metrics or /healthz\n")


def _render(metrics: Metrics) -> bytes:
    """With thousands of partitions this takes the better part of a second: too long for the loop."""
    from ottla.server import prometheus  # prometheus-client takes longer to import than the broker to start

    return prometheus.render(metrics)


def _response(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _name(host: bytes) -> str:
    """The name or address in a Host header, without its port."""
    text = host.decode("latin-1")
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def _is_loopback(name: str) -> bool:
    if name.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
