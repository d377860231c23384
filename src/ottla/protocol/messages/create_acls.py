"""CreateAcls, API 30, versions 1 to 3. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class AclCreation(Message):
    __slots__ = ("host", "operation", "permission_type", "principal", "resource_name",
        "resource_pattern_type", "resource_type")  # fmt: skip
    FIELDS = (
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("resource_pattern_type", "int8", default=3),
        Field("principal", "string", default=""),
        Field("host", "string", default=""),
        Field("operation", "int8", default=0),
        Field("permission_type", "int8", default=0),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Message):
    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("creations",)  # fmt: skip
    FIELDS = (Field("creations", "struct", array=True, of=AclCreation),)

    def __init__(
        self,
        *,
        creations: list[AclCreation] | None = None,
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is None else creations


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=1, default=""),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Message):
    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=AclCreationResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is None else results
