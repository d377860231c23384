"""IncrementalAlterConfigs, API 44, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class AlterableConfig(Message):
    __slots__ = ("config_operation", "name", "value")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("config_operation", "int8", default=0),
        Field("value", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class AlterConfigsResource(Message):
    __slots__ = ("configs", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("configs", "struct", array=True, of=AlterableConfig),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs: list[AlterableConfig] = [] if configs is None else configs


class IncrementalAlterConfigsRequest(Message):
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("resources", "validate_only")  # fmt: skip
    FIELDS = (
        Field("resources", "struct", array=True, of=AlterConfigsResource),
        Field("validate_only", "bool", default=False),
    )

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is None else resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Message):
    __slots__ = ("error_code", "error_message", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class IncrementalAlterConfigsResponse(Message):
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("responses", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("responses", "struct", array=True, of=AlterConfigsResourceResponse),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is None else responses
