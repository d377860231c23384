"""AlterPartitionReassignments, API 45, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ReassignablePartition(Message):
    __slots__ = ("partition_index", "replicas")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("replicas", "int32", array=True, nullable_since=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=ReassignablePartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[ReassignablePartition] = [] if partitions is None else partitions


class AlterPartitionReassignmentsRequest(Message):
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("allow_replication_factor_change", "timeout_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("timeout_ms", "int32", default=60000),
        Field("allow_replication_factor_change", "bool", since=1, default=True),
        Field("topics", "struct", array=True, of=ReassignableTopic),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is None else topics


class ReassignablePartitionResponse(Message):
    __slots__ = ("error_code", "error_message", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=ReassignablePartitionResponse),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is None else partitions


class AlterPartitionReassignmentsResponse(Message):
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("allow_replication_factor_change", "error_code", "error_message",
        "responses", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("allow_replication_factor_change", "bool", since=1, default=True),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("responses", "struct", array=True, of=ReassignableTopicResponse),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is None else responses
