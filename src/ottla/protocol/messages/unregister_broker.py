"""UnregisterBroker, API 64, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class UnregisterBrokerRequest(Message):
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("broker_id",)  # fmt: skip
    FIELDS = (Field("broker_id", "int32", default=0),)

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id


class UnregisterBrokerResponse(Message):
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("error_code", "error_message", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
