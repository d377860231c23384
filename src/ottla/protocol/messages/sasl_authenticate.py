"""SaslAuthenticate, API 36, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class SaslAuthenticateRequest(Message):
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("auth_bytes",)  # fmt: skip
    FIELDS = (Field("auth_bytes", "bytes", default=b""),)

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("auth_bytes", "error_code", "error_message", "session_lifetime_ms")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("auth_bytes", "bytes", default=b""),
        Field("session_lifetime_ms", "int64", since=1, default=0),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
