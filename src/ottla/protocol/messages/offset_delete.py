"""OffsetDelete, API 47, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)  # fmt: skip
    FIELDS = (Field("partition_index", "int32", default=0),)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=OffsetDeleteRequestPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is None else partitions


class OffsetDeleteRequest(Message):
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 1
    __slots__ = ("group_id", "topics")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("topics", "struct", array=True, of=OffsetDeleteRequestTopic),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is None else topics


class OffsetDeleteResponsePartition(Message):
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


class OffsetDeleteResponseTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=OffsetDeleteResponsePartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is None else partitions


class OffsetDeleteResponse(Message):
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 1
    __slots__ = ("error_code", "throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=OffsetDeleteResponseTopic),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is None else topics
