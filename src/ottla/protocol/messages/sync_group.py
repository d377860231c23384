"""SyncGroup, API 14, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class SyncGroupRequestAssignment(Message):
    __slots__ = ("assignment", "member_id")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", default=""),
        Field("assignment", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 4
    __slots__ = ("assignments", "generation_id", "group_id", "group_instance_id", "member_id",
        "protocol_name", "protocol_type")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("generation_id", "int32", default=0),
        Field("member_id", "string", default=""),
        Field("group_instance_id", "string", since=3, nullable_since=3),
        Field("protocol_type", "string", since=5, nullable_since=5),
        Field("protocol_name", "string", since=5, nullable_since=5),
        Field("assignments", "struct", array=True, of=SyncGroupRequestAssignment),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is None else assignments


class SyncGroupResponse(Message):
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 4
    __slots__ = ("assignment", "error_code", "protocol_name", "protocol_type",
        "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("error_code", "int16", default=0),
        Field("protocol_type", "string", since=5, nullable_since=5),
        Field("protocol_name", "string", since=5, nullable_since=5),
        Field("assignment", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
