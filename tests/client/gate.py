"""A door in front of a broker that has none: TLS, SASL, or both, and then the bytes go through as they are."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType

from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse

TLS = Path(__file__).parent / "tls"
CA = str(TLS / "ca.pem")
ITERATIONS = 4096
_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE = 18, 17, 36


class Gate:
    """Listens on a port of its own. `passwords` by user asks for SASL; `is_impostor` does not know them."""

    def __init__(
        self,
        behind: str,
        *,
        tls: bool = False,
        passwords: dict[str, str] | None = None,
        mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        is_impostor: bool = False,
        address: str = "127.0.0.1",
    ) -> None:
        host, _, port = behind.rpartition(":")
        self._behind = host, int(port)
        self._passwords = passwords
        self._mechanisms = mechanisms
        self._is_impostor = is_impostor
        self._context: ssl.SSLContext | None = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(TLS / "server.pem")
        self._listener = socket.create_server((address, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._run(self._accept)

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            _shut(one)
        for thread in self._threads:
            thread.join()

    def _run(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._run(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        self._sockets.append(client)
        broker = socket.create_connection(self._behind)
        self._sockets.append(broker)
        try:
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
                self._sockets.append(client)
            if self._passwords is not None:
                self._admit(client, broker)
        except OSError:
            _shut(client)
            _shut(broker)
            return
        self._run(_pump, broker, client)
        _pump(client, broker)

    def _admit(self, client: socket.socket, broker: socket.socket) -> None:
        """Answer until the client is who it says."""
        server: Scram | None = None
        while True:
            request = _frame(client)
            header = frame.RequestHeader.parse(request)
            if header.api_key == _API_VERSIONS:
                broker.sendall(len(request).to_bytes(4, "big") + request)
                _, response = frame.decode_response(_API_VERSIONS, header.version, _frame(broker))
                response.api_keys += [
                    ApiVersion(api_key=_HANDSHAKE, min_version=0, max_version=1),
                    ApiVersion(api_key=_AUTHENTICATE, min_version=0, max_version=2),
                ]
                _answer(client, header, response)
                continue
            message = frame.decode_request(header, request)
            if header.api_key == _HANDSHAKE:
                known = message.mechanism in self._mechanisms
                code = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
                _answer(
                    client, header, SaslHandshakeResponse(error_code=code, mechanisms=list(self._mechanisms))
                )
                mechanism = message.mechanism
                continue
            assert header.api_key == _AUTHENTICATE
            if mechanism == "PLAIN":
                answer, done = self._plain(message.auth_bytes)
            else:
                server = server or Scram(mechanism, self._passwords or {}, self._is_impostor)
                answer, done = server.say(message.auth_bytes)
            if answer is None:
                failed = SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="wrong name or password"
                )
                _answer(client, header, failed)
                raise OSError
            _answer(client, header, SaslAuthenticateResponse(auth_bytes=answer))
            if done:
                return

    def _plain(self, token: bytes) -> tuple[bytes | None, bool]:
        _, user, password = token.decode().split("\0")
        assert self._passwords is not None
        return (b"", True) if self._passwords.get(user) == password else (None, True)


class Scram:
    """The server's half, from the RFC."""

    def __init__(self, mechanism: str, passwords: dict[str, str], is_impostor: bool) -> None:
        self._hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self._passwords = passwords
        self._is_impostor = is_impostor
        self._first = b""
        self._challenge = b""
        self._salted = b""

    def say(self, token: bytes) -> tuple[bytes | None, bool]:
        if not self._first:
            self._first = token.removeprefix(b"n,,")
            fields = dict(part.split("=", 1) for part in self._first.decode().split(","))
            salt = secrets.token_bytes(16)
            user = fields["n"].replace("=2C", ",").replace("=3D", "=")
            password = self._passwords.get(user, secrets.token_hex())
            self._salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), salt, ITERATIONS)
            nonce = fields["r"] + secrets.token_hex()
            self._challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i={ITERATIONS}".encode()
            return self._challenge, False
        unproved, _, proof = token.rpartition(b",p=")
        said = b",".join((self._first, self._challenge, unproved))
        key = hmac.digest(self._salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, key).digest(), said, self._hash)
        expected = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        if not self._is_impostor and base64.b64decode(proof) != expected:
            return None, True
        server_key = hmac.digest(b"?" if self._is_impostor else self._salted, b"Server Key", self._hash)
        return b"v=" + base64.b64encode(hmac.digest(server_key, said, self._hash)), True


def _answer(client: socket.socket, header: frame.RequestHeader, message: Message) -> None:
    client.sendall(
        b"".join(frame.response_parts(header.api_key, header.version, header.correlation_id, message))
    )


def _frame(stream: socket.socket) -> bytes:
    return _exactly(stream, int.from_bytes(_exactly(stream, 4), "big"))


def _exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise OSError
        data += piece
    return data


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    _shut(target)


def _shut(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
    stream.close()
