"""AlterClientQuotas, API 49, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


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


class OpData(Message):
    __slots__ = ("key", "remove", "value")  # fmt: skip
    FIELDS = (
        Field("key", "string", default=""),
        Field("value", "float64", default=0.0),
        Field("remove", "bool", default=False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class EntryData(Message):
    __slots__ = ("entity", "ops")  # fmt: skip
    FIELDS = (
        Field("entity", "struct", array=True, of=EntityData),
        Field("ops", "struct", array=True, of=OpData),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        ops: list[OpData] | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        self.ops: list[OpData] = [] if ops is None else ops


class AlterClientQuotasRequest(Message):
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("entries", "validate_only")  # fmt: skip
    FIELDS = (
        Field("entries", "struct", array=True, of=EntryData),
        Field("validate_only", "bool", default=False),
    )

    def __init__(
        self,
        *,
        entries: list[EntryData] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.entries: list[EntryData] = [] if entries is None else entries
        self.validate_only = validate_only


class ResponseEntryData(Message):
    __slots__ = ("entity", "error_code", "error_message")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("entity", "struct", array=True, of=EntityData),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity: list[EntityData] = [] if entity is None else entity


class AlterClientQuotasResponse(Message):
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1
    __slots__ = ("entries", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("entries", "struct", array=True, of=ResponseEntryData),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries: list[ResponseEntryData] = [] if entries is None else entries
