"""OffsetFetch, API 9, versions 1 to 10. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class OffsetFetchRequestTopic(Message):
    __slots__ = ("name", "partition_indexes")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=7, default=""),
        Field("partition_indexes", "int32", array=True, until=7),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes


class OffsetFetchRequestTopics(Message):
    __slots__ = ("name", "partition_indexes", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=8, until=9, default=""),
        Field("topic_id", "uuid", since=10),
        Field("partition_indexes", "int32", array=True, since=8),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes


class OffsetFetchRequestGroup(Message):
    __slots__ = ("group_id", "member_epoch", "member_id", "topics")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", since=8, default=""),
        Field("member_id", "string", since=9, nullable_since=9),
        Field("member_epoch", "int32", since=9, default=-1),
        Field("topics", "struct", array=True, since=8, nullable_since=8, of=OffsetFetchRequestTopics),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetchRequest(Message):
    API_KEY = 9
    VERSIONS = (1, 10)
    FLEXIBLE_SINCE = 6
    __slots__ = ("group_id", "groups", "require_stable", "topics")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", until=7, default=""),
        Field("topics", "struct", array=True, until=7, nullable_since=2, of=OffsetFetchRequestTopic),
        Field("groups", "struct", array=True, since=8, of=OffsetFetchRequestGroup),
        Field("require_stable", "bool", since=7, default=False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = None,
        groups: list[OffsetFetchRequestGroup] | None = None,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is None else groups
        self.require_stable = require_stable


class OffsetFetchResponsePartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata",
        "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", until=7, default=0),
        Field("committed_offset", "int64", until=7, default=0),
        Field("committed_leader_epoch", "int32", since=5, until=7, default=-1),
        Field("metadata", "string", until=7, nullable_since=1, default=""),
        Field("error_code", "int16", until=7, default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=7, default=""),
        Field("partitions", "struct", array=True, until=7, of=OffsetFetchResponsePartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is None else partitions


class OffsetFetchResponsePartitions(Message):
    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata",
        "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", since=8, default=0),
        Field("committed_offset", "int64", since=8, default=0),
        Field("committed_leader_epoch", "int32", since=8, default=-1),
        Field("metadata", "string", since=8, nullable_since=8, default=""),
        Field("error_code", "int16", since=8, default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    __slots__ = ("name", "partitions", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=8, until=9, default=""),
        Field("topic_id", "uuid", since=10),
        Field("partitions", "struct", array=True, since=8, of=OffsetFetchResponsePartitions),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partitions: list[OffsetFetchResponsePartitions] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is None else partitions


class OffsetFetchResponseGroup(Message):
    __slots__ = ("error_code", "group_id", "topics")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", since=8, default=""),
        Field("topics", "struct", array=True, since=8, of=OffsetFetchResponseTopics),
        Field("error_code", "int16", since=8, default=0),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is None else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    API_KEY = 9
    VERSIONS = (1, 10)
    FLEXIBLE_SINCE = 6
    __slots__ = ("error_code", "groups", "throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", since=3, default=0),
        Field("topics", "struct", array=True, until=7, of=OffsetFetchResponseTopic),
        Field("error_code", "int16", since=2, until=7, default=0),
        Field("groups", "struct", array=True, since=8, of=OffsetFetchResponseGroup),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is None else topics
        self.error_code = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is None else groups
