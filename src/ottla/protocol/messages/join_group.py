"""JoinGroup, API 11, versions 0 to 9. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class JoinGroupRequestProtocol(Message):
    __slots__ = ("metadata", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("metadata", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Message):
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_SINCE = 6
    __slots__ = ("group_id", "group_instance_id", "member_id", "protocol_type", "protocols",
        "reason", "rebalance_timeout_ms", "session_timeout_ms")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("session_timeout_ms", "int32", default=0),
        Field("rebalance_timeout_ms", "int32", since=1, default=-1),
        Field("member_id", "string", default=""),
        Field("group_instance_id", "string", since=5, nullable_since=5),
        Field("protocol_type", "string", default=""),
        Field("protocols", "struct", array=True, of=JoinGroupRequestProtocol),
        Field("reason", "string", since=8, nullable_since=8),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is None else protocols
        self.reason = reason


class JoinGroupResponseMember(Message):
    __slots__ = ("group_instance_id", "member_id", "metadata")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", default=""),
        Field("group_instance_id", "string", since=5, nullable_since=5),
        Field("metadata", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Message):
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_SINCE = 6
    __slots__ = ("error_code", "generation_id", "leader", "member_id", "members",
        "protocol_name", "protocol_type", "skip_assignment", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=2, default=0),
        Field("error_code", "int16", default=0),
        Field("generation_id", "int32", default=-1),
        Field("protocol_type", "string", since=7, nullable_since=7),
        Field("protocol_name", "string", nullable_since=7, default=""),
        Field("leader", "string", default=""),
        Field("skip_assignment", "bool", since=9, default=False),
        Field("member_id", "string", default=""),
        Field("members", "struct", array=True, of=JoinGroupResponseMember),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is None else members
