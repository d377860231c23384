"""OffsetForLeaderEpoch, API 23, versions 2 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class OffsetForLeaderPartition(Message):
    __slots__ = ("current_leader_epoch", "leader_epoch", "partition")  # fmt: skip
    FIELDS = (
        Field("partition", "int32", default=0),
        Field("current_leader_epoch", "int32", default=-1),
        Field("leader_epoch", "int32", default=0),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = ("partitions", "topic")  # fmt: skip
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partitions", "struct", array=True, of=OffsetForLeaderPartition),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is None else partitions


class OffsetForLeaderEpochRequest(Message):
    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("replica_id", "topics")  # fmt: skip
    FIELDS = (
        Field("replica_id", "int32", since=3, default=-2),
        Field("topics", "struct", array=True, of=OffsetForLeaderTopic),
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
    ) -> None:
        self.replica_id = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is None else topics


class EpochEndOffset(Message):
    __slots__ = ("end_offset", "error_code", "leader_epoch", "partition")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("partition", "int32", default=0),
        Field("leader_epoch", "int32", default=-1),
        Field("end_offset", "int64", default=-1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = ("partitions", "topic")  # fmt: skip
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partitions", "struct", array=True, of=EpochEndOffset),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is None else partitions


class OffsetForLeaderEpochResponse(Message):
    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_SINCE = 4
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=OffsetForLeaderTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is None else topics
