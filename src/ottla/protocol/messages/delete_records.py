"""DeleteRecords, API 21, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DeleteRecordsPartition(Message):
    __slots__ = ("offset", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("offset", "int64", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=DeleteRecordsPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is None else partitions


class DeleteRecordsRequest(Message):
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("timeout_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("topics", "struct", array=True, of=DeleteRecordsTopic),
        Field("timeout_ms", "int32", default=0),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class DeleteRecordsPartitionResult(Message):
    __slots__ = ("error_code", "low_watermark", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("low_watermark", "int64", default=0),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=DeleteRecordsPartitionResult),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is None else partitions


class DeleteRecordsResponse(Message):
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=DeleteRecordsTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is None else topics
