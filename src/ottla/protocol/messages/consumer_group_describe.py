"""ConsumerGroupDescribe, API 69, versions 0 to 1. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class ConsumerGroupDescribeRequest(Message):
    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("group_ids", "include_authorized_operations")  # fmt: skip
    FIELDS = (
        Field("group_ids", "string", array=True),
        Field("include_authorized_operations", "bool", default=False),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is None else group_ids
        self.include_authorized_operations = include_authorized_operations


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")  # fmt: skip
    FIELDS = (
        Field("topic_id", "uuid"),
        Field("topic_name", "string", default=""),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions: list[int] = [] if partitions is None else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)  # fmt: skip
    FIELDS = (Field("topic_partitions", "struct", array=True, of=TopicPartitions),)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is None else topic_partitions


class Member(Message):
    __slots__ = ("assignment", "client_host", "client_id", "instance_id", "member_epoch",
        "member_id", "member_type", "rack_id", "subscribed_topic_names",
        "subscribed_topic_regex", "target_assignment")  # fmt: skip
    FIELDS = (
        Field("member_id", "string", default=""),
        Field("instance_id", "string", nullable_since=0),
        Field("rack_id", "string", nullable_since=0),
        Field("member_epoch", "int32", default=0),
        Field("client_id", "string", default=""),
        Field("client_host", "string", default=""),
        Field("subscribed_topic_names", "string", array=True),
        Field("subscribed_topic_regex", "string", nullable_since=0),
        Field("assignment", "struct", of=Assignment),
        Field("target_assignment", "struct", of=Assignment),
        Field("member_type", "int8", since=1, default=-1),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment,
        target_assignment: Assignment,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names: list[str] = (
            [] if subscribed_topic_names is None else subscribed_topic_names
        )
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.member_type = member_type


class DescribedGroup(Message):
    __slots__ = ("assignment_epoch", "assignor_name", "authorized_operations", "error_code",
        "error_message", "group_epoch", "group_id", "group_state", "members")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0),
        Field("group_id", "string", default=""),
        Field("group_state", "string", default=""),
        Field("group_epoch", "int32", default=0),
        Field("assignment_epoch", "int32", default=0),
        Field("assignor_name", "string", default=""),
        Field("members", "struct", array=True, of=Member),
        Field("authorized_operations", "int32", default=-2147483648),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members: list[Member] = [] if members is None else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0
    __slots__ = ("groups", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("groups", "struct", array=True, of=DescribedGroup),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is None else groups
