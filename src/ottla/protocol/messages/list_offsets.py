"""ListOffsets, API 2, versions 1 to 11. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ListOffsetsPartition(Message):
    __slots__ = ("current_leader_epoch", "partition_index", "timestamp")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("current_leader_epoch", "int32", since=4, default=-1),
        Field("timestamp", "int64", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=ListOffsetsPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is None else partitions


class ListOffsetsRequest(Message):
    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_SINCE = 6
    __slots__ = ("isolation_level", "replica_id", "timeout_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("replica_id", "int32", default=0),
        Field("isolation_level", "int8", since=2, default=0),
        Field("topics", "struct", array=True, of=ListOffsetsTopic),
        Field("timeout_ms", "int32", since=10, default=0),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("error_code", "leader_epoch", "offset", "partition_index", "timestamp")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("timestamp", "int64", default=-1),
        Field("offset", "int64", default=-1),
        Field("leader_epoch", "int32", since=4, default=-1),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=ListOffsetsPartitionResponse),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is None else partitions


class ListOffsetsResponse(Message):
    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_SINCE = 6
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=2, default=0),
        Field("topics", "struct", array=True, of=ListOffsetsTopicResponse),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is None else topics
