"""ConsumerGroupHeartbeat, API 68, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")  # fmt: skip
    FIELDS = (
        Field("topic_id", "uuid"),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("group_id", "instance_id", "member_epoch", "member_id", "rack_id",
        "rebalance_timeout_ms", "server_assignor", "subscribed_topic_names",
        "subscribed_topic_regex", "topic_partitions")  # fmt: skip
    FIELDS = (
        Field("group_id", "string", default=""),
        Field("member_id", "string", default=""),
        Field("member_epoch", "int32", default=0),
        Field("instance_id", "string", nullable_since=0),
        Field("rack_id", "string", nullable_since=0),
        Field("rebalance_timeout_ms", "int32", default=-1),
        Field("subscribed_topic_names", "string", array=True, nullable_since=0),
        Field("subscribed_topic_regex", "string", since=1, nullable_since=1),
        Field("server_assignor", "string", nullable_since=0),
        Field("topic_partitions", "struct", array=True, nullable_since=0, of=TopicPartitions),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)  # fmt: skip
    FIELDS = (Field("topic_partitions", "struct", array=True, of=TopicPartitions),)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is None else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("assignment", "error_code", "error_message", "heartbeat_interval_ms",
        "member_epoch", "member_id", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0),
        Field("member_id", "string", nullable_since=0),
        Field("member_epoch", "int32", default=0),
        Field("heartbeat_interval_ms", "int32", default=0),
        Field("assignment", "struct", nullable_since=0, of=Assignment),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
