"""ListPartitionReassignments, API 46, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ListPartitionReassignmentsTopics(Message):
    __slots__ = ("name", "partition_indexes")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partition_indexes", "int32", array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("timeout_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("timeout_ms", "int32", default=60000),
        Field("topics", "struct", array=True, nullable_since=0, of=ListPartitionReassignmentsTopics),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Message):
    __slots__ = ("adding_replicas", "partition_index", "removing_replicas", "replicas")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("replicas", "int32", array=True),
        Field("adding_replicas", "int32", array=True),
        Field("removing_replicas", "int32", array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas: list[int] = [] if replicas is None else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=OngoingPartitionReassignment),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is None else partitions


class ListPartitionReassignmentsResponse(Message):
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("error_code", "error_message", "throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("topics", "struct", array=True, of=OngoingTopicReassignment),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is None else topics
