"""OffsetCommit, API 8, versions 2 to 10. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class OffsetCommitRequestPartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset",
        "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("committed_offset", "int64", default=0),
        Field("committed_leader_epoch", "int32", since=6, default=-1),
        Field("committed_metadata", "string", nullable_since=2, default=""),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=9, default=""),
        Field("topic_id", "uuid", since=10),
        Field("partitions", "struct", array=True, of=OffsetCommitRequestPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partitions: list[OffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is None else partitions


class OffsetCommitRequest(Message):
    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_SINCE = 8
    __slots__ = ("generation_id_or_member_epoch", "group_id", "group_instance_id",
        "member_id", "retention_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("generation_id_or_member_epoch", "int32", default=-1),
        Field("member_id", "string", default=""),
        Field("retention_time_ms", "int64", until=4, default=-1),
        Field("group_instance_id", "string", since=7, nullable_since=7),
        Field("topics", "struct", array=True, of=OffsetCommitRequestTopic),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,
        group_instance_id: str | None = None,
        topics: list[OffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time_ms = retention_time_ms
        self.group_instance_id = group_instance_id
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is None else topics


class OffsetCommitResponsePartition(Message):
    __slots__ = ("error_code", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=9, default=""),
        Field("topic_id", "uuid", since=10),
        Field("partitions", "struct", array=True, of=OffsetCommitResponsePartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partitions: list[OffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is None else partitions


class OffsetCommitResponse(Message):
    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_SINCE = 8
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=3, default=0),
        Field("topics", "struct", array=True, of=OffsetCommitResponseTopic),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is None else topics
