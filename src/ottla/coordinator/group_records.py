"""The records of `__consumer_offsets`: committed offsets and classic groups, byte for byte as Kafka 4.2 writes them.

Offsets are written in version 4 (1 where the client set an expiry of its own), groups in version 3. All older
versions are read. Other kinds of records, such as those of the newer group protocol, are left alone.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from ottla.logtools.coordinator_records import plain_group_record

_INT16, _INT32 = Struct(">h"), Struct(">i")
_COMMIT_KEY, _GROUP_KEY = 1, 2
_HEAD_1 = Struct(">hq")
_HEAD_4 = Struct(">hqi")
_PLAIN_4 = Struct(">hqiBqB")  # without metadata and tags
_TIMES_1 = Struct(">qq")
_TIME = Struct(">q")
_TOPIC_ID_TAG = bytes((1, 0, 16))  # one tag, number 0, 16 bytes
_NO_TAGS = b"\0"


class CommittedOffset(NamedTuple):
    """How far a group has come in a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1  # set by old clients; else the broker's retention counts
    topic_id: uuid.UUID | None = None


class OffsetCommit(NamedTuple):
    """A commit, or without value its removal."""

    group: str
    topic: str
    partition: int
    value: CommittedOffset | None


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


GroupRecord = OffsetCommit | GroupMetadata


class GroupCodec:
    """Between records and bytes."""

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        if isinstance(record, OffsetCommit):
            key = _commit_key(record.group, record.topic) + _INT32.pack(record.partition)
            return key, None if record.value is None else _commit_value(record.value)
        key = _INT16.pack(_GROUP_KEY) + _string(record.group)
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
    return _INT16.pack(_COMMIT_KEY) + _string(group) + _string(topic)


def _commit_value(commit: CommittedOffset) -> bytes:
    if not commit.metadata and commit.topic_id is None and commit.expire_timestamp == -1:
        return _PLAIN_4.pack(4, commit.offset, commit.leader_epoch, 1, commit.commit_timestamp, 0)
    metadata = commit.metadata.encode()
    if commit.expire_timestamp != -1:
        times = _TIMES_1.pack(commit.commit_timestamp, commit.expire_timestamp)
        return _HEAD_1.pack(1, commit.offset) + _INT16.pack(len(metadata)) + metadata + times
    tags = _NO_TAGS if commit.topic_id is None else _TOPIC_ID_TAG + commit.topic_id.bytes
    head = _HEAD_4.pack(4, commit.offset, commit.leader_epoch)
    return head + _varint(len(metadata) + 1) + metadata + _TIME.pack(commit.commit_timestamp) + tags


def _group_value(group: GroupValue) -> bytes:
    parts = [
        _INT16.pack(3),
        _string(group.protocol_type),
        _INT32.pack(group.generation),
        _string(group.protocol),
        _string(group.leader),
        _TIME.pack(group.timestamp),
        _INT32.pack(len(group.members)),
    ]
    for member in group.members:
        parts += (
            _string(member.member_id),
            _string(member.instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _INT32.pack(member.rebalance_timeout_ms),
            _INT32.pack(member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    return b"".join(parts)


def _string(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(-1)
    data = text.encode()
    return _INT16.pack(len(data)) + data


def _bytes(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
