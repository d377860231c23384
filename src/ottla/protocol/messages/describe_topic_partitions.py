"""DescribeTopicPartitions, API 75, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class TopicRequest(Message):
    __slots__ = ("name",)  # fmt: skip
    FIELDS = (Field("name", "string", default=""),)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name


class Cursor(Message):
    __slots__ = ("partition_index", "topic_name")  # fmt: skip
    FIELDS = (
        Field("topic_name", "string", default=""),
        Field("partition_index", "int32", default=0),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("cursor", "response_partition_limit", "topics")  # fmt: skip
    FIELDS = (
        Field("topics", "struct", array=True, of=TopicRequest),
        Field("response_partition_limit", "int32", default=2000),
        Field("cursor", "struct", nullable_since=0, of=Cursor),
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is None else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = ("eligible_leader_replicas", "error_code", "isr_nodes", "last_known_elr",
        "leader_epoch", "leader_id", "offline_replicas", "partition_index", "replica_nodes")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("partition_index", "int32", default=0),
        Field("leader_id", "int32", default=0),
        Field("leader_epoch", "int32", default=-1),
        Field("replica_nodes", "int32", array=True),
        Field("isr_nodes", "int32", array=True),
        Field("eligible_leader_replicas", "int32", array=True, nullable_since=0),
        Field("last_known_elr", "int32", array=True, nullable_since=0),
        Field("offline_replicas", "int32", array=True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = ("error_code", "is_internal", "name", "partitions",
        "topic_authorized_operations", "topic_id")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("name", "string", nullable_since=0, default=""),
        Field("topic_id", "uuid"),
        Field("is_internal", "bool", default=False),
        Field("partitions", "struct", array=True, of=DescribeTopicPartitionsResponsePartition),
        Field("topic_authorized_operations", "int32", default=-2147483648),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = (
            [] if partitions is None else partitions
        )
        self.topic_authorized_operations = topic_authorized_operations


class DescribeTopicPartitionsResponse(Message):
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("next_cursor", "throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=DescribeTopicPartitionsResponseTopic),
        Field("next_cursor", "struct", nullable_since=0, of=Cursor),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is None else topics
        self.next_cursor = next_cursor
