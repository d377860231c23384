"""Heartbeat, API 12, versions 0 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class HeartbeatRequest(Message):
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("generation_id", "int32", default=0),
        Field("member_id", "string", default=""),
        Field("group_instance_id", "string", since=3, nullable_since=3),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Message):
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("error_code", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
