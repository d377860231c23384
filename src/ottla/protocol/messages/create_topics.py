"""CreateTopics, API 19, versions 2 to 7. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class CreatableReplicaAssignment(Message):
    __slots__ = ("broker_ids", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("broker_ids", "int32", array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids


class CreatableTopicConfig(Message):
    __slots__ = ("name", "value")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("value", "string", nullable_since=2, default=""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    __slots__ = ("assignments", "configs", "name", "num_partitions", "replication_factor")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("num_partitions", "int32", default=0),
        Field("replication_factor", "int16", default=0),
        Field("assignments", "struct", array=True, of=CreatableReplicaAssignment),
        Field("configs", "struct", array=True, of=CreatableTopicConfig),
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is None else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is None else configs


class CreateTopicsRequest(Message):
    API_KEY = 19
    VERSIONS = (2, 7)
    FLEXIBLE_SINCE = 5
    __slots__ = ("timeout_ms", "topics", "validate_only")  # fmt: skip
    FIELDS = (
        Field("topics", "struct", array=True, of=CreatableTopic),
        Field("timeout_ms", "int32", default=60000),
        Field("validate_only", "bool", default=False),
    )

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Message):
    __slots__ = ("config_source", "is_sensitive", "name", "read_only", "value")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=5, default=""),
        Field("value", "string", since=5, nullable_since=5, default=""),
        Field("read_only", "bool", since=5, default=False),
        Field("config_source", "int8", since=5, default=-1),
        Field("is_sensitive", "bool", since=5, default=False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = ("configs", "error_code", "error_message", "name", "num_partitions",
        "replication_factor", "topic_config_error_code", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("topic_id", "uuid", since=7),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=2, default=""),
        Field("topic_config_error_code", "int16", since=5, tag=0, default=0),
        Field("num_partitions", "int32", since=5, default=-1),
        Field("replication_factor", "int16", since=5, default=-1),
        Field("configs", "struct", array=True, since=5, nullable_since=5, of=CreatableTopicConfigs),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs


class CreateTopicsResponse(Message):
    API_KEY = 19
    VERSIONS = (2, 7)
    FLEXIBLE_SINCE = 5
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=CreatableTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is None else topics
