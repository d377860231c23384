"""Metadata, API 3, versions 0 to 13. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class MetadataRequestTopic(Message):
    __slots__ = ("name", "topic_id")  # fmt: skip
    FIELDS = (
        Field("topic_id", "uuid", since=10),
        Field("name", "string", nullable_since=10, default=""),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_SINCE = 9
    __slots__ = ("allow_auto_topic_creation", "include_cluster_authorized_operations",
        "include_topic_authorized_operations", "topics")  # fmt: skip
    FIELDS = (
        Field("topics", "struct", array=True, nullable_since=1, of=MetadataRequestTopic),
        Field("allow_auto_topic_creation", "bool", since=4, default=True),
        Field("include_cluster_authorized_operations", "bool", since=8, until=10, default=False),
        Field("include_topic_authorized_operations", "bool", since=8, default=False),
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = None,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    __slots__ = ("host", "node_id", "port", "rack")  # fmt: skip
    FIELDS = (
        Field("node_id", "int32", default=0),
        Field("host", "string", default=""),
        Field("port", "int32", default=0),
        Field("rack", "string", since=1, nullable_since=1),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Message):
    __slots__ = ("error_code", "isr_nodes", "leader_epoch", "leader_id", "offline_replicas",
        "partition_index", "replica_nodes")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("partition_index", "int32", default=0),
        Field("leader_id", "int32", default=0),
        Field("leader_epoch", "int32", since=7, default=-1),
        Field("replica_nodes", "int32", array=True),
        Field("isr_nodes", "int32", array=True),
        Field("offline_replicas", "int32", array=True, since=5),
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
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = ("error_code", "is_internal", "name", "partitions",
        "topic_authorized_operations", "topic_id")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("name", "string", nullable_since=12, default=""),
        Field("topic_id", "uuid", since=10),
        Field("is_internal", "bool", since=1, default=False),
        Field("partitions", "struct", array=True, of=MetadataResponsePartition),
        Field("topic_authorized_operations", "int32", since=8, default=-2147483648),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_SINCE = 9
    __slots__ = ("brokers", "cluster_authorized_operations", "cluster_id", "controller_id",
        "error_code", "throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=3, default=0),
        Field("brokers", "struct", array=True, of=MetadataResponseBroker),
        Field("cluster_id", "string", since=2, nullable_since=2),
        Field("controller_id", "int32", since=1, default=-1),
        Field("topics", "struct", array=True, of=MetadataResponseTopic),
        Field("cluster_authorized_operations", "int32", since=8, until=10, default=-2147483648),
        Field("error_code", "int16", since=13, default=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | None = None,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | None = None,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is None else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is None else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
