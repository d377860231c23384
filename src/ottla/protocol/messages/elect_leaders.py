"""ElectLeaders, API 43, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class TopicPartitions(Message):
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


class ElectLeadersRequest(Message):
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("election_type", "timeout_ms", "topic_partitions")  # fmt: skip
    FIELDS = (
        Field("election_type", "int8", since=1, default=0),
        Field("topic_partitions", "struct", array=True, nullable_since=0, of=TopicPartitions),
        Field("timeout_ms", "int32", default=60000),
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = None,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Message):
    __slots__ = ("error_code", "error_message", "partition_id")  # fmt: skip
    FIELDS = (
        Field("partition_id", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    __slots__ = ("partition_result", "topic")  # fmt: skip
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partition_result", "struct", array=True, of=PartitionResult),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
    ) -> None:
        self.topic = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is None else partition_result


class ElectLeadersResponse(Message):
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2
    __slots__ = ("error_code", "replica_election_results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", since=1, default=0),
        Field("replica_election_results", "struct", array=True, of=ReplicaElectionResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results: list[ReplicaElectionResult] = (
            [] if replica_election_results is None else replica_election_results
        )
