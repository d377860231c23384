"""ListGroups, API 16, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ListGroupsRequest(Message):
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("states_filter", "types_filter")  # fmt: skip
    FIELDS = (
        Field("states_filter", "string", array=True, since=4),
        Field("types_filter", "string", array=True, since=5),
    )

    def __init__(
        self,
        *,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is None else states_filter
        self.types_filter: list[str] = [] if types_filter is None else types_filter


class ListedGroup(Message):
    __slots__ = ("group_id", "group_state", "group_type", "protocol_type")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("protocol_type", "string", default=""),
        Field("group_state", "string", since=4, default=""),
        Field("group_type", "string", since=5, default=""),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Message):
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("error_code", "groups", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("error_code", "int16", default=0),
        Field("groups", "struct", array=True, of=ListedGroup),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups: list[ListedGroup] = [] if groups is None else groups
