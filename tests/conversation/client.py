"""A client that says exactly what it is told to, in any version, over a plain socket, and waits for the answer."""

from __future__ import annotations

import socket
from struct import Struct

from ottla.protocol import frame
from ottla.protocol.message import Message

ANSWER_TIMEOUT_S = 10.0
_LENGTH = Struct(">i")


class ConnectionEndedError(Exception):
    """The broker has closed the connection instead of answering."""


class RawClient:
    """One connection to a broker; it is opened at the first request, and anew after the broker has closed it."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def send(self, version: int, request: Message, client_id: str | None) -> None:
        """Send a request."""
        self._correlation_id += 1
        parts = frame.request_parts(request.API_KEY, version, self._correlation_id, client_id, request)
        self.send_bytes(b"".join(parts))

    def send_bytes(self, data: bytes) -> None:
        """Send what may be no request at all."""
        if self._socket is None:
            self._socket = socket.create_connection((self.host, self.port), ANSWER_TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self.close()
            raise ConnectionEndedError from error

    def receive(self) -> bytes:
        """The next response, without its length."""
        try:
            (size,) = _LENGTH.unpack(self._receive(4))
            return self._receive(size)
        except ConnectionResetError as error:
            self.close()
            raise ConnectionEndedError from error
        except TimeoutError:
            self.close()
            raise

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                self.close()
                raise ConnectionEndedError
            data += piece
        return bytes(data)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
