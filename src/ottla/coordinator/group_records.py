"""The records of `__consumer_offsets`: committed offsets and classic groups, byte for byte as Kafka 4.2 writes them.

Offsets are written in version 4 (1 where the client set an expiry of its own), groups in version 3. All older
versions are read. The records of the newer group protocol are in consumer_records.py; those of share and streams
groups are left alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from ottla.coordinator.commit_kernel import put_commit
from ottla.coordinator.consumer_records import (
    CONSUMER_RECORDS,
    ConsumerRecord,
    encode_consumer_record,
    read_consumer_record,
)
from ottla.coordinator.packing import INT16, INT32, NO_TAGS, compact_string, string
from ottla.logtools.coordinator_records import plain_group_record
from ottla.records.kernel import encode_records

_COMMIT_KEY, _GROUP_KEY = 1, 2
_HEAD_1 = Struct(">hq")
_HEAD_4 = Struct(">hqi")
_TIMES_1 = Struct(">qq")
_TIME = Struct(">q")
_NO_METADATA = compact_string("")
_TOPIC_ID_TAG = bytes((1, 0, 16))  # one tag, number 0, 16 bytes


class CommittedOffset:
    """How far a group has come in a partition. Never changed."""

    __slots__ = ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset", "topic_id")

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp: int,
        expire_timestamp: int = -1,  # set by old clients; else the broker's retention counts
        topic_id: uuid.UUID | None = None,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id

    def _fields(self) -> tuple[int, int, str, int, int, uuid.UUID | None]:
        return (
            self.offset,
            self.leader_epoch,
            self.metadata,
            self.commit_timestamp,
            self.expire_timestamp,
            self.topic_id,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommittedOffset) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"CommittedOffset{self._fields()}"


class OffsetCommit:
    """A commit, or without value its removal. Never changed."""

    __slots__ = ("group", "partition", "topic", "value")

    def __init__(self, group: str, topic: str, partition: int, value: CommittedOffset | None) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.value = value

    def _fields(self) -> tuple[str, str, int, CommittedOffset | None]:
        return self.group, self.topic, self.partition, self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetCommit) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"OffsetCommit{self._fields()}"


class MemberMetadata(NamedTuple):
    """A member of a classic group as it is written down."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    """A classic group as it is written down: stable with all its members, or empty."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    timestamp: int  # of the last change; -1 where an old version does not say
    members: tuple[MemberMetadata, ...]


class GroupMetadata(NamedTuple):
    """A classic group, or without value its end."""

    group: str
    value: GroupValue | None


GroupRecord = OffsetCommit | GroupMetadata | ConsumerRecord


class GroupCodec:
    """Between records and bytes."""

    def write(
        self, batch: bytearray, records: Sequence[GroupRecord], time_delta: int, first_delta: int
    ) -> None:
        delta = first_delta
        group = topic = ""
        topic_id: uuid.UUID | None = None
        key, tags = b"", NO_TAGS
        for record in records:
            value = record.value if isinstance(record, OffsetCommit) else None
            if not isinstance(record, OffsetCommit) or value is None or value.expire_timestamp != -1:
                plain_key, plain_value = self.encode(record)
                encode_records(batch, [(time_delta, plain_key, plain_value, ())], 0, [delta])
            else:
                # The commits of one request share most of what they say.
                if not key or record.group is not group or record.topic is not topic:
                    group, topic = record.group, record.topic
                    key = _commit_key(group, topic)
                if value.topic_id is not topic_id:
                    topic_id = value.topic_id
                    tags = _tags(topic_id)
                metadata = compact_string(value.metadata) if value.metadata else _NO_METADATA
                put_commit(
                    batch,
                    time_delta,
                    delta,
                    key,
                    record.partition,
                    value.offset,
                    value.leader_epoch,
                    metadata,
                    value.commit_timestamp,
                    tags,
                )
            delta += 1

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        if isinstance(record, OffsetCommit):
            key = _commit_key(record.group, record.topic) + INT32.pack(record.partition)
            return key, None if record.value is None else _commit_value(record.value)
        if not isinstance(record, GroupMetadata):
            return encode_consumer_record(record)
        key = INT16.pack(_GROUP_KEY) + string(record.group)
        return key, None if record.value is None else _group_value(record.value)

    def decode(self, key: bytes | None, value: bytes | None) -> GroupRecord | None:
        fields, content = plain_group_record(key, value)
        if not isinstance(fields, dict) or isinstance(content, bytes):
            return None
        if fields["type"] == "offset_commit":
            commit = None if content is None else _read_commit(content)
            return OffsetCommit(fields["group"], fields["topic"], fields["partition"], commit)
        if fields["type"] == "group_metadata":
            return GroupMetadata(fields["group"], None if content is None else _read_group(content))
        if fields["type"] in CONSUMER_RECORDS:
            return read_consumer_record(fields, content)
        return None


def _read_commit(content: dict[str, Any]) -> CommittedOffset:
    topic_id = content.get("topic_id")
    return CommittedOffset(
        content["offset"],
        content.get("leader_epoch", -1),
        content["metadata"],
        content["commit_timestamp"],
        content.get("expire_timestamp", -1),
        None if topic_id is None else uuid.UUID(topic_id),
    )


def _read_group(content: dict[str, Any]) -> GroupValue:
    members = tuple(
        MemberMetadata(
            member["member_id"],
            member.get("group_instance_id"),
            member["client_id"],
            member["client_host"],
            # Version 0 knows one timeout for both.
            member.get("rebalance_timeout_ms", member["session_timeout_ms"]),
            member["session_timeout_ms"],
            member["subscription"],
            member["assignment"],
        )
        for member in content["members"]
    )
    return GroupValue(
        content["protocol_type"],
        content["generation"],
        content["protocol"],
        content["leader"],
        content.get("current_state_timestamp", -1),
        members,
    )


@lru_cache(maxsize=1000)
def _commit_key(group: str, topic: str) -> bytes:
    """The key but for the partition: groups commit the same topics again and again."""
    return INT16.pack(_COMMIT_KEY) + string(group) + string(topic)


def _commit_value(commit: CommittedOffset) -> bytes:
    metadata = commit.metadata.encode()
    if commit.expire_timestamp != -1:
        times = _TIMES_1.pack(commit.commit_timestamp, commit.expire_timestamp)
        return _HEAD_1.pack(1, commit.offset) + INT16.pack(len(metadata)) + metadata + times
    head = _HEAD_4.pack(4, commit.offset, commit.leader_epoch)
    times = _TIME.pack(commit.commit_timestamp)
    return head + compact_string(commit.metadata) + times + _tags(commit.topic_id)


def _tags(topic_id: uuid.UUID | None) -> bytes:
    return NO_TAGS if topic_id is None else _TOPIC_ID_TAG + topic_id.bytes


def _group_value(group: GroupValue) -> bytes:
    parts = [
        INT16.pack(3),
        string(group.protocol_type),
        INT32.pack(group.generation),
        string(group.protocol),
        string(group.leader),
        _TIME.pack(group.timestamp),
        INT32.pack(len(group.members)),
    ]
    for member in group.members:
        parts += (
            string(member.member_id),
            string(member.instance_id),
            string(member.client_id),
            string(member.client_host),
            INT32.pack(member.rebalance_timeout_ms),
            INT32.pack(member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    return b"".join(parts)


def _bytes(data: bytes) -> bytes:
    return INT32.pack(len(data)) + data
