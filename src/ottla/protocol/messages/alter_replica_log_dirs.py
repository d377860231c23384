"""AlterReplicaLogDirs, API 34, versions 1 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class AlterReplicaLogDirTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[int] = [] if partitions is None else partitions


class AlterReplicaLogDir(Message):
    __slots__ = ("path", "topics")  # fmt: skip
    FIELDS = (
        Field("path", "string", default=""),
        Field("topics", "struct", array=True, of=AlterReplicaLogDirTopic),
    )

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] | None = None,
    ) -> None:
        self.path = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is None else topics


class AlterReplicaLogDirsRequest(Message):
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("dirs",)  # fmt: skip
    FIELDS = (Field("dirs", "struct", array=True, of=AlterReplicaLogDir),)

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] | None = None,
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is None else dirs


class AlterReplicaLogDirPartitionResult(Message):
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


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = ("partitions", "topic_name")  # fmt: skip
    FIELDS = (
        Field("topic_name", "string", default=""),
        Field("partitions", "struct", array=True, of=AlterReplicaLogDirPartitionResult),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is None else partitions


class AlterReplicaLogDirsResponse(Message):
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=AlterReplicaLogDirTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is None else results
