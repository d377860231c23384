"""DeleteGroups, API 42, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DeleteGroupsRequest(Message):
    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("groups_names",)  # fmt: skip
    FIELDS = (Field("groups_names", "string", array=True),)

    def __init__(
        self,
        *,
        groups_names: list[str] | None = None,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is None else groups_names


class DeletableGroupResult(Message):
    __slots__ = ("error_code", "group_id")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Message):
    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=DeletableGroupResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is None else results
