"""Produce, API 0, versions 0 to 13. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class PartitionProduceData(Message):
    __slots__ = ("index", "records")  # fmt: skip
    FIELDS = (
        Field("index", "int32", default=0),
        Field("records", "records", nullable_since=0),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        records: memoryview | None = None,
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Message):
    __slots__ = ("name", "partition_data", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=12, default=""),
        Field("topic_id", "uuid", since=13),
        Field("partition_data", "struct", array=True, of=PartitionProduceData),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partition_data: list[PartitionProduceData] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is None else partition_data


class ProduceRequest(Message):
    API_KEY = 0
    VERSIONS = (0, 13)
    FLEXIBLE_SINCE = 9
    __slots__ = ("acks", "timeout_ms", "topic_data", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", since=3, nullable_since=3),
        Field("acks", "int16", default=0),
        Field("timeout_ms", "int32", default=0),
        Field("topic_data", "struct", array=True, of=TopicProduceData),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is None else topic_data


class BatchIndexAndErrorMessage(Message):
    __slots__ = ("batch_index", "batch_index_error_message")  # fmt: skip
    FIELDS = (
        Field("batch_index", "int32", since=8, default=0),
        Field("batch_index_error_message", "string", since=8, nullable_since=8),
    )

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_epoch", "leader_id")  # fmt: skip
    FIELDS = (
        Field("leader_id", "int32", since=10, default=-1),
        Field("leader_epoch", "int32", since=10, default=-1),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Message):
    __slots__ = ("base_offset", "current_leader", "error_code", "error_message", "index",
        "log_append_time_ms", "log_start_offset", "record_errors")  # fmt: skip
    FIELDS = (
        Field("index", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("base_offset", "int64", default=0),
        Field("log_append_time_ms", "int64", since=2, default=-1),
        Field("log_start_offset", "int64", since=5, default=-1),
        Field("record_errors", "struct", array=True, since=8, of=BatchIndexAndErrorMessage),
        Field("error_message", "string", since=8, nullable_since=8),
        Field("current_leader", "struct", since=10, tag=0, of=LeaderIdAndEpoch),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is None else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(Message):
    __slots__ = ("name", "partition_responses", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", until=12, default=""),
        Field("topic_id", "uuid", since=13),
        Field("partition_responses", "struct", array=True, of=PartitionProduceResponse),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partition_responses: list[PartitionProduceResponse] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if partition_responses is None else partition_responses
        )


class NodeEndpoint(Message):
    __slots__ = ("host", "node_id", "port", "rack")  # fmt: skip
    FIELDS = (
        Field("node_id", "int32", since=10, default=0),
        Field("host", "string", since=10, default=""),
        Field("port", "int32", since=10, default=0),
        Field("rack", "string", since=10, nullable_since=10),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ProduceResponse(Message):
    API_KEY = 0
    VERSIONS = (0, 13)
    FLEXIBLE_SINCE = 9
    __slots__ = ("node_endpoints", "responses", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("responses", "struct", array=True, of=TopicProduceResponse),
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("node_endpoints", "struct", array=True, since=10, tag=0, of=NodeEndpoint),
    )

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is None else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
