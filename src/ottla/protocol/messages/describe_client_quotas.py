"""DescribeClientQuotas, API 48, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ComponentData(Message):
    __slots__ = ("entity_type", "match", "match_type")  # fmt: skip
    FIELDS = (
        Field("entity_type", "string", default=""),
        Field("match_type", "int8", default=0),
        Field("match", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Message):
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("components", "strict")  # fmt: skip
    FIELDS = (
        Field("components", "struct", array=True, of=ComponentData),
        Field("strict", "bool", default=False),
    )

    def __init__(
        self,
        *,
        components: list[ComponentData] | None = None,
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if components is None else components
        self.strict = strict


class EntityData(Message):
    __slots__ = ("entity_name", "entity_type")  # fmt: skip
    FIELDS = (
        Field("entity_type", "string", default=""),
        Field("entity_name", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Message):
    __slots__ = ("key", "value")  # fmt: skip
    FIELDS = (
        Field("key", "string", default=""),
        Field("value", "float64", default=0.0),
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


class EntryData(Message):
    __slots__ = ("entity", "values")  # fmt: skip
    FIELDS = (
        Field("entity", "struct", array=True, of=EntityData),
        Field("values", "struct", array=True, of=ValueData),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        self.values: list[ValueData] = [] if values is None else values


class DescribeClientQuotasResponse(Message):
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("entries", "error_code", "error_message", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("entries", "struct", array=True, nullable_since=0, of=EntryData),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries
