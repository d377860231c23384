"""CreatePartitions, API 37, versions 0 to 3. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)  # fmt: skip
    FIELDS = (Field("broker_ids", "int32", array=True),)

    def __init__(
        self,
        *,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = ("assignments", "count", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("count", "int32", default=0),
        Field("assignments", "struct", array=True, nullable_since=0, of=CreatePartitionsAssignment),
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = None,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


class CreatePartitionsRequest(Message):
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("timeout_ms", "topics", "validate_only")  # fmt: skip
    FIELDS = (
        Field("topics", "struct", array=True, of=CreatePartitionsTopic),
        Field("timeout_ms", "int32", default=0),
        Field("validate_only", "bool", default=False),
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Message):
    __slots__ = ("error_code", "error_message", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0),
    )

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Message):
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 2
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=CreatePartitionsTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is None else results
