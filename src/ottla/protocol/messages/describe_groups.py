"""DescribeGroups, API 15, versions 0 to 6. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribeGroupsRequest(Message):
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 5
    __slots__ = ("groups", "include_authorized_operations")  # fmt: skip
    FIELDS = (
        Field("groups", "string", array=True),
        Field("include_authorized_operations", "bool", since=3, default=False),
    )

    def __init__(
        self,
        *,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups: list[str] = [] if groups is None else groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(Message):
    __slots__ = ("client_host", "client_id", "group_instance_id", "member_assignment",
        "member_id", "member_metadata")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", default=""),
        Field("group_instance_id", "string", since=4, nullable_since=4),
        Field("client_id", "string", default=""),
        Field("client_host", "string", default=""),
        Field("member_metadata", "bytes", default=b""),
        Field("member_assignment", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Message):
    __slots__ = ("authorized_operations", "error_code", "error_message", "group_id",
        "group_state", "members", "protocol_data", "protocol_type")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", since=6, nullable_since=6),
        Field("group_id", "string", default=""),
        Field("group_state", "string", default=""),
        Field("protocol_type", "string", default=""),
        Field("protocol_data", "string", default=""),
        Field("members", "struct", array=True, of=DescribedGroupMember),
        Field("authorized_operations", "int32", since=3, default=-2147483648),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is None else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Message):
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 5
    __slots__ = ("groups", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("groups", "struct", array=True, of=DescribedGroup),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is None else groups
