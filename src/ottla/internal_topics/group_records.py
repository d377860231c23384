"""The records of `__consumer_offsets`: committed offsets and classic groups, byte for byte as Kafka 4.2 writes them.

Offsets are written in version 4 (1 where the client set an expiry of its own), groups in version 3. All older
versions are read. The records of the newer group protocol are in consumer_group_records.py; those of share and streams
groups are left alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from ottla.internal_topics.commit_kernel import CommittedOffset, put_commits
from ottla.internal_topics.consumer_group_records import (
    CONSUMER_RECORDS,
    ConsumerRecord,
    encode_consumer_record,
    read_consumer_record,
)
from ottla.internal_topics.decoding import read_group_record
from ottla.internal_topics.packing import INT16, INT32, NO_TAGS, compact_string, string
from ottla.protocol.commit_topic import Entry
from ottla.records.kernel import encode_records

_COMMIT_KEY, _GROUP_KEY = 1, 2
_HEAD_1 = Struct(">hq")
_HEAD_4 = Struct(">hqi")
_TIMES_1 = Struct(">qq")
_TIME = Struct(">q")
_TOPIC_ID_TAG = bytes((1, 0, 16))  # one tag, number 0, 16 bytes


class OffsetCommit(NamedTuple):
    """A commit, or without value its removal."""

    group: str
    topic: str
    partition: int
    value: CommittedOffset | None


class OffsetCommits:
    """What a request commits of a topic: as many records as there are partitions, in one. Never changed."""

    __slots__ = ("commit_timestamp", "entries", "expire_timestamp", "group", "topic", "topic_id")

    def __init__(
        self,
        group: str,
        topic: str,
        topic_id: uuid.UUID | None,
        entries: list[Entry],
        commit_timestamp: int,
        expire_timestamp: int,
    ) -> None:
        self.group = group
        self.topic = topic
        self.topic_id = topic_id
        self.entries = entries
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp

    def singly(self) -> list[OffsetCommit]:
        """The same, one by one: as they are read from the log."""
        singles = []
        for partition, offset, epoch, metadata in self.entries:
            value = CommittedOffset(
                offset, epoch, metadata, self.commit_timestamp, self.expire_timestamp, self.topic_id
            )
            singles.append(OffsetCommit(self.group, self.topic, partition, value))
        return singles


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


SingleRecord = OffsetCommit | GroupMetadata | ConsumerRecord
GroupRecord = SingleRecord | OffsetCommits


class GroupRecordFormat:
    """Between records and bytes: how a record is written, and read."""

    def write(
        self, batch: bytearray, records: Sequence[GroupRecord], time_delta: int, first_delta: int
    ) -> int:
        delta = first_delta
        for record in records:
            if isinstance(record, OffsetCommits):
                delta = self._write_commits(batch, record, time_delta, delta)
            else:
                key, value = self.encode(record)
                encode_records(batch, [(time_delta, key, value, ())], 0, [delta])
                delta += 1
        return delta - first_delta

    def _write_commits(self, batch: bytearray, commits: OffsetCommits, time_delta: int, delta: int) -> int:
        if commits.expire_timestamp != -1:
            return delta + self.write(batch, commits.singly(), time_delta, delta)
        key, tags = _commit_key(commits.group, commits.topic), _tags(commits.topic_id)
        put_commits(batch, time_delta, delta, key, commits.entries, commits.commit_timestamp, tags)
        return delta + len(commits.entries)

    def encode(self, record: SingleRecord) -> tuple[bytes, bytes | None]:
        if isinstance(record, OffsetCommit):
            key = _commit_key(record.group, record.topic) + INT32.pack(record.partition)
            return key, None if record.value is None else _commit_value(record.value)
        if not isinstance(record, GroupMetadata):
            return encode_consumer_record(record)
        key = INT16.pack(_GROUP_KEY) + string(record.group)
        return key, None if record.value is None else _group_value(record.value)

    def decode(self, key: bytes | None, value: bytes | None) -> SingleRecord | None:
        fields, content = read_group_record(key, value)
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


@lru_cache(maxsize=1000)
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
