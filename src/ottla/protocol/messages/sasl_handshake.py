"""SaslHandshake, API 17, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class SaslHandshakeRequest(Message):
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 2
    __slots__ = ("mechanism",)  # fmt: skip
    FIELDS = (Field("mechanism", "string", default=""),)

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism


class SaslHandshakeResponse(Message):
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 2
    __slots__ = ("error_code", "mechanisms")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("mechanisms", "string", array=True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
    ) -> None:
        self.error_code = error_code
        self.mechanisms: list[str] = [] if mechanisms is None else mechanisms
