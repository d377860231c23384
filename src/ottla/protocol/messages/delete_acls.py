"""DeleteAcls, API 31, versions 1 to 3. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DeleteAclsFilter(Message):
    __slots__ = ("host_filter", "operation", "pattern_type_filter", "permission_type",
        "principal_filter", "resource_name_filter", "resource_type_filter")  # fmt: skip
    FIELDS = (
        Field("resource_type_filter", "int8", default=0),
        Field("resource_name_filter", "string", nullable_since=1, default=""),
        Field("pattern_type_filter", "int8", default=3),
        Field("principal_filter", "string", nullable_since=1, default=""),
        Field("host_filter", "string", nullable_since=1, default=""),
        Field("operation", "int8", default=0),
        Field("permission_type", "int8", default=0),
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsRequest(Message):
    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("filters",)  # fmt: skip
    FIELDS = (Field("filters", "struct", array=True, of=DeleteAclsFilter),)

    def __init__(
        self,
        *,
        filters: list[DeleteAclsFilter] | None = None,
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is None else filters


class DeleteAclsMatchingAcl(Message):
    __slots__ = ("error_code", "error_message", "host", "operation", "pattern_type",
        "permission_type", "principal", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=1, default=""),
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("pattern_type", "int8", default=3),
        Field("principal", "string", default=""),
        Field("host", "string", default=""),
        Field("operation", "int8", default=0),
        Field("permission_type", "int8", default=0),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Message):
    __slots__ = ("error_code", "error_message", "matching_acls")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=1, default=""),
        Field("matching_acls", "struct", array=True, of=DeleteAclsMatchingAcl),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is None else matching_acls


class DeleteAclsResponse(Message):
    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("filter_results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("filter_results", "struct", array=True, of=DeleteAclsFilterResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is None else filter_results
