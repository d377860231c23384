"""One connection to a broker: TLS and SASL as asked for, versions agreed on, requests in order.

Requests may be posted before earlier ones are answered; answers come in the order of the requests. What breaks a
connection is a `ConnectionLostError`, after which it is of no more use.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from typing import Any

from ottla import __version__
from ottla.client.failures import check
from ottla.client.scram import Scram
from ottla.client.security import PLAIN, Security
from ottla.errors import AuthenticationError, BrokerError, ConnectionLostError, UnsupportedVersionError
from ottla.protocol import frame
from ottla.protocol.codec import DecodeError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest

CLIENT_ID = "ottla"
# An answer may hold one batch of any size besides what was asked for.
_MAX_ANSWER_BYTES = (1 << 31) - 1
_CODE_AT = 4  # in an ApiVersions response, behind the correlation id
_OLDEST_HANDSHAKE = 1  # version 0 authenticates without frames


class Connection:
    """A broker that answers. `send` gives the response of a request; or `post` now and `take` later."""

    def __init__(self, stream: socket.socket, peer: str, client_id: str = CLIENT_ID) -> None:
        self._stream = stream
        self._peer = peer
        self._client_id = client_id
        self._posted: deque[tuple[int, int, int]] = deque()  # api key, version, correlation id
        self._last_id = 0
        self._versions: dict[int, tuple[int, int]] = {}

    @classmethod
    def connect(
        cls,
        host: str,
        port: int,
        security: Security | None = None,
        timeout_s: float = 30.0,
        client_id: str = CLIENT_ID,
    ) -> Connection:
        """Connect, agree on versions, and authenticate."""
        security = security or Security()
        peer = f"{host}:{port}"
        try:
            stream = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise ConnectionLostError(f"{peer}: {error}") from error
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection = cls(_encrypted(stream, host, peer, security), peer, client_id)
        except BaseException:
            stream.close()
            raise
        try:
            connection._agree()
            if security.mechanism is not None:
                connection._authenticate(security, security.mechanism)
        except BaseException:
            connection.close()
            raise
        return connection

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()

    # -- requests

    def version(self, request: type[Message], newest: int | None = None) -> int:
        """The newest version that both sides know, up to `newest`."""
        oldest_here, newest_here = request.VERSIONS
        oldest_there, newest_there = self._versions.get(request.API_KEY, (0, -1))
        version = min(newest_here if newest is None else newest, newest_there)
        if version < max(oldest_here, oldest_there):
            name = request.__name__.removesuffix("Request")
            raise UnsupportedVersionError(f"{self._peer} does not know a version of {name} that ottla knows")
        return version

    def send(self, request: Message, newest: int | None = None) -> Any:
        """The response of one request. Those posted before must have been taken."""
        if self._posted:
            raise RuntimeError(f"{len(self._posted)} earlier answers of {self._peer} have not been taken")
        self.post(request, newest)
        return self.take()

    def post(self, request: Message, newest: int | None = None) -> None:
        """Send a request; `take` gives its response."""
        self._post(request, self.version(type(request), newest))

    def take(self) -> Any:
        """The response of the earliest request that has none yet."""
        key, version, correlation_id = self._posted.popleft()
        answer = self._receive()
        try:
            if key == frame.API_VERSIONS and answer[_CODE_AT : _CODE_AT + 2] == _UNSUPPORTED:
                version = 0  # told in the one form that every client can read
            found, response = frame.decode_response(key, version, answer)
        except DecodeError as error:
            raise ConnectionLostError(f"{self._peer}: not a response: {error}") from error
        if found != correlation_id:
            raise ConnectionLostError(f"{self._peer} answers request {found} instead of {correlation_id}")
        return response

    def _post(self, request: Message, version: int) -> None:
        self._last_id += 1
        key = request.API_KEY
        parts = frame.request_parts(key, version, self._last_id, self._client_id, request)
        try:
            self._stream.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        except OSError as error:
            raise ConnectionLostError(f"{self._peer}: {error or type(error).__name__}") from error
        self._posted.append((key, version, self._last_id))

    def _receive(self) -> memoryview:
        size = int.from_bytes(self._read(4), "big", signed=True)
        if not 4 <= size <= _MAX_ANSWER_BYTES:
            raise ConnectionLostError(
                f"{self._peer}: an answer of {size} bytes; is it a Kafka broker, without TLS?"
            )
        return self._read(size)

    def _read(self, size: int) -> memoryview:
        view = memoryview(bytearray(size))
        at = 0
        try:
            while at < size:
                count = self._stream.recv_into(view[at:])
                if not count:
                    raise ConnectionLostError(f"{self._peer} closed the connection")
                at += count
        except OSError as error:
            raise ConnectionLostError(f"{self._peer}: {error or type(error).__name__}") from error
        return view

    # -- the beginning

    def _agree(self) -> None:
        request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=__version__)
        for version in (request.VERSIONS[1], 3, 0):
            self._post(request, version)
            response = self.take()
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
        check(response.error_code, f"{self._peer} does not say what it knows")
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys
        }

    def _authenticate(self, security: Security, mechanism: str) -> None:
        self.version(SaslHandshakeRequest)
        self._post(SaslHandshakeRequest(mechanism=mechanism), _OLDEST_HANDSHAKE)
        response = self.take()
        if response.error_code:
            known = ", ".join(response.mechanisms) or "none"
            raise AuthenticationError(f"{self._peer} does not take {mechanism}; it takes {known}")
        if mechanism == PLAIN:
            self._say(f"\0{security.username}\0{security.password}".encode())
            return
        scram = Scram(mechanism, security.username, security.password)
        scram.check(self._say(scram.answer(self._say(scram.first()))))

    def _say(self, token: bytes) -> bytes:
        response = self.send(SaslAuthenticateRequest(auth_bytes=token))
        if response.error_code:
            raise AuthenticationError(f"{self._peer}: {response.error_message or 'authentication failed'}")
        answer: bytes = response.auth_bytes
        return answer


_UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


def _encrypted(stream: socket.socket, host: str, peer: str, security: Security) -> socket.socket:
    if not security.tls:
        return stream
    try:
        return security.context().wrap_socket(stream, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(f"{peer} is not trusted: {error.verify_message}") from error
    except OSError as error:
        raise ConnectionLostError(f"{peer}: no TLS: {error}") from error


def parse_servers(text: str) -> list[tuple[str, int]]:
    """`host:port,host:port`; without a port it is Kafka's own."""
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, port = entry.rpartition(":")
        if not colon or "]" in port:
            host, port = entry, "9092"
        if not host or not port.isdigit():
            raise BrokerError(f"{entry!r} is no address: write HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise BrokerError("no broker is named: bootstrap.servers is empty")
    return found
