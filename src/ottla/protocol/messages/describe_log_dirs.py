"""DescribeLogDirs, API 35, versions 1 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribableLogDirTopic(Message):
    __slots__ = ("partitions", "topic")  # fmt: skip
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is None else partitions


class DescribeLogDirsRequest(Message):
    API_KEY = 35
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 2
    __slots__ = ("topics",)  # fmt: skip
    FIELDS = (Field("topics", "struct", array=True, nullable_since=1, of=DescribableLogDirTopic),)

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = None,
    ) -> None:
        self.topics = topics


class DescribeLogDirsPartition(Message):
    __slots__ = ("is_future_key", "offset_lag", "partition_index", "partition_size")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("partition_size", "int64", default=0),
        Field("offset_lag", "int64", default=0),
        Field("is_future_key", "bool", default=False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=DescribeLogDirsPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is None else partitions


class DescribeLogDirsResult(Message):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("log_dir", "string", default=""),
        Field("topics", "struct", array=True, of=DescribeLogDirsTopic),
        Field("total_bytes", "int64", since=4, default=-1),
        Field("usable_bytes", "int64", since=4, default=-1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is None else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes


class DescribeLogDirsResponse(Message):
    API_KEY = 35
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 2
    __slots__ = ("error_code", "results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", since=3, default=0),
        Field("results", "struct", array=True, of=DescribeLogDirsResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is None else results
