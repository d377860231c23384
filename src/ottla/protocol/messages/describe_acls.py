"""DescribeAcls, API 29, versions 1 to 3. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribeAclsRequest(Message):
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
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


class AclDescription(Message):
    __slots__ = ("host", "operation", "permission_type", "principal")  # fmt: skip
    FIELDS = (
        Field("principal", "string", default=""),
        Field("host", "string", default=""),
        Field("operation", "int8", default=0),
        Field("permission_type", "int8", default=0),
    )

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(Message):
    __slots__ = ("acls", "pattern_type", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("pattern_type", "int8", default=3),
        Field("acls", "struct", array=True, of=AclDescription),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls: list[AclDescription] = [] if acls is None else acls


class DescribeAclsResponse(Message):
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("error_code", "error_message", "resources", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=1, default=""),
        Field("resources", "struct", array=True, of=DescribeAclsResource),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is None else resources
