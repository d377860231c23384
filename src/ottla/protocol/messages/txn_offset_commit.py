"""TxnOffsetCommit, API 28, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset",
        "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("committed_offset", "int64", default=0),
        Field("committed_leader_epoch", "int32", since=2, default=-1),
        Field("committed_metadata", "string", nullable_since=0, default=""),
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


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=TxnOffsetCommitRequestPartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is None else partitions


class TxnOffsetCommitRequest(Message):
    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id",
        "producer_epoch", "producer_id", "topics", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", default=""),
        Field("group_id", "string", default=""),
        Field("producer_id", "int64", default=0),
        Field("producer_epoch", "int16", default=0),
        Field("generation_id", "int32", since=3, default=-1),
        Field("member_id", "string", since=3, default=""),
        Field("group_instance_id", "string", since=3, nullable_since=3),
        Field("topics", "struct", array=True, of=TxnOffsetCommitRequestTopic),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is None else topics


class TxnOffsetCommitResponsePartition(Message):
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


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=TxnOffsetCommitResponsePartition),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is None else partitions


class TxnOffsetCommitResponse(Message):
    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("throttle_time_ms", "topics")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("topics", "struct", array=True, of=TxnOffsetCommitResponseTopic),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is None else topics
