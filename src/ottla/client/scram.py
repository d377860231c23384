"""The client's half of SCRAM (RFC 5802), which proves that both sides know a password without sending it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import stringprep
import unicodedata

from ottla.errors import AuthenticationError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_BINDING = b"n,,"
_MIN_ITERATIONS = 4096


class Scram:
    """One exchange: `first`, then `answer` to what the server said, then `check` what it says last."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str | None = None) -> None:
        self._hash = HASHES[mechanism]
        self._password = _prepared(password).encode()
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(24)).decode()
        name = _prepared(username).replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return _NO_BINDING + self._bare.encode()

    def answer(self, challenge: bytes) -> bytes:
        """The proof, for the server's salt and number of iterations."""
        fields = _fields(challenge)
        try:
            nonce, salt, iterations = (
                fields["r"],
                base64.b64decode(fields["s"], validate=True),
                int(fields["i"]),
            )
        except (KeyError, ValueError) as error:
            raise AuthenticationError("what the broker says is not SCRAM") from error
        if not nonce.startswith(self._nonce) or nonce == self._nonce or iterations < _MIN_ITERATIONS:
            raise AuthenticationError("the broker's SCRAM challenge is not an answer to ours, or a weak one")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        unproved = f"c={base64.b64encode(_NO_BINDING).decode()},r={nonce}"
        said = ",".join((self._bare, challenge.decode(), unproved)).encode()
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), said)
        proof = bytes(mine ^ other for mine, other in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), said)
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()

    def check(self, final: bytes) -> None:
        """The server must know the password as well."""
        fields = _fields(final)
        if "e" in fields:
            raise AuthenticationError(f"SCRAM: {fields['e']}")
        expected = base64.b64encode(self._server_signature)
        if not hmac.compare_digest(fields.get("v", "").encode(), expected):
            raise AuthenticationError(
                "the broker does not know the password either: it is not who it should be"
            )

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError as error:
        raise AuthenticationError("what the broker says is not SCRAM") from error
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}


def _prepared(text: str) -> str:
    """Names and passwords in one normal form (RFC 4013), so that the same characters give the same bytes."""
    mapped = (" " if stringprep.in_table_c12(c) else c for c in text if not stringprep.in_table_b1(c))
    return unicodedata.normalize("NFKC", "".join(mapped))
