"""LeaveGroup, API 13, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class MemberIdentity(Message):
    __slots__ = ("group_instance_id", "member_id", "reason")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", since=3, default=""),
        Field("group_instance_id", "string", since=3, nullable_since=3),
        Field("reason", "string", since=5, nullable_since=5),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 4
    __slots__ = ("group_id", "member_id", "members")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("member_id", "string", until=2, default=""),
        Field("members", "struct", array=True, since=3, of=MemberIdentity),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members: list[MemberIdentity] = [] if members is None else members


class MemberResponse(Message):
    __slots__ = ("error_code", "group_instance_id", "member_id")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", since=3, default=""),
        Field("group_instance_id", "string", since=3, nullable_since=3, default=""),
        Field("error_code", "int16", since=3, default=0),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 4
    __slots__ = ("error_code", "members", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("error_code", "int16", default=0),
        Field("members", "struct", array=True, since=3, of=MemberResponse),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members: list[MemberResponse] = [] if members is None else members
