"""FindCoordinator, API 10, versions 0 to 6. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class FindCoordinatorRequest(Message):
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 3
    __slots__ = ("coordinator_keys", "key", "key_type")  # fmt: skip
    FIELDS = (
        Field("key", "string", until=3, default=""),
        Field("key_type", "int8", since=1, default=0),
        Field("coordinator_keys", "string", array=True, since=4),
    )

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is None else coordinator_keys


class Coordinator(Message):
    __slots__ = ("error_code", "error_message", "host", "key", "node_id", "port")  # fmt: skip
    FIELDS = (
        Field("key", "string", since=4, default=""),
        Field("node_id", "int32", since=4, default=0),
        Field("host", "string", since=4, default=""),
        Field("port", "int32", since=4, default=0),
        Field("error_code", "int16", since=4, default=0),
        Field("error_message", "string", since=4, nullable_since=4, default=""),
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 3
    __slots__ = ("coordinators", "error_code", "error_message", "host", "node_id", "port",
        "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("error_code", "int16", until=3, default=0),
        Field("error_message", "string", since=1, until=3, nullable_since=1, default=""),
        Field("node_id", "int32", until=3, default=0),
        Field("host", "string", until=3, default=""),
        Field("port", "int32", until=3, default=0),
        Field("coordinators", "struct", array=True, since=4, of=Coordinator),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators: list[Coordinator] = [] if coordinators is None else coordinators
