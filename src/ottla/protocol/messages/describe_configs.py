"""DescribeConfigs, API 32, versions 1 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribeConfigsResource(Message):
    __slots__ = ("configuration_keys", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("configuration_keys", "string", array=True, nullable_since=1),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys


class DescribeConfigsRequest(Message):
    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("include_documentation", "include_synonyms", "resources")  # fmt: skip
    FIELDS = (
        Field("resources", "struct", array=True, of=DescribeConfigsResource),
        Field("include_synonyms", "bool", default=False),
        Field("include_documentation", "bool", since=3, default=False),
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is None else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Message):
    __slots__ = ("name", "source", "value")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("value", "string", nullable_since=1, default=""),
        Field("source", "int8", default=0),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    __slots__ = ("config_source", "config_type", "documentation", "is_sensitive", "name",
        "read_only", "synonyms", "value")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("value", "string", nullable_since=1, default=""),
        Field("read_only", "bool", default=False),
        Field("config_source", "int8", default=-1),
        Field("is_sensitive", "bool", default=False),
        Field("synonyms", "struct", array=True, of=DescribeConfigsSynonym),
        Field("config_type", "int8", since=3, default=0),
        Field("documentation", "string", since=3, nullable_since=3, default=""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is None else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    __slots__ = ("configs", "error_code", "error_message", "resource_name", "resource_type")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=1, default=""),
        Field("resource_type", "int8", default=0),
        Field("resource_name", "string", default=""),
        Field("configs", "struct", array=True, of=DescribeConfigsResourceResult),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is None else configs


class DescribeConfigsResponse(Message):
    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=DescribeConfigsResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is None else results
