"""The records of consumer groups (KIP-848) in `__consumer_offsets`, byte for byte as Kafka 4.2 writes them.

A group is spread over several records: its epoch, and for each member what it wants, what it should have (its target)
and what it has. A record without value takes back what the ones before it said.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.internal_topics.packing import (
    INT16,
    INT32,
    INT64,
    NO_TAGS,
    compact,
    compact_string,
    string,
    varint,
)

VERSION = INT16.pack(0)  # of all values
_HASH_TAG = bytes((1, 0, 8))  # one tag, number 0, 8 bytes
_NOT_CLASSIC_TAG = bytes((1, 0, 1, 0))  # one tag, number 0, 1 byte: null

# Partitions by topic id; never changed, never with an empty set.
Assigned = Mapping[uuid.UUID, frozenset[int]]
NOTHING: Assigned = {}
_NAME_BYTES = 50  # besides its letters


class MemberState(IntEnum):
    """How far a member is on its way to what it should have. The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # has to give up some first
    UNRELEASED_PARTITIONS = 2  # waits until others have given up theirs
    UNKNOWN = 127


class ClassicMember(NamedTuple):
    """What is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberDetails(NamedTuple):
    """Who a member is and what it wants."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str = ""  # a regular expression of topics; empty if there is none
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None

    @property
    def size_bytes(self) -> int:
        """How much the member says, with what it takes to keep that apart."""
        said = sum([len(topic) + _NAME_BYTES for topic in self.topics]) + len(self.pattern)
        if self.classic is None:
            return said
        return said + sum([len(data) for _, data in self.classic.protocols])

    def updated(
        self,
        instance_id: str | None,
        rack_id: str | None,
        client_id: str,
        client_host: str,
        topics: Iterable[str] | None,
        pattern: str | None,
        rebalance_timeout_ms: int,
        assignor: str | None = None,
        classic: ClassicMember | None = None,
    ) -> MemberDetails:
        """With what the member says now; what it leaves out (None, or a timeout of -1) is as before."""
        return MemberDetails(
            self.instance_id if instance_id is None else instance_id,
            self.rack_id if rack_id is None else rack_id,
            client_id,
            client_host,
            self.topics if topics is None else frozenset(topics),
            self.pattern if pattern is None else pattern,
            self.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
            self.assignor if assignor is None else assignor,
            classic,
        )


class Standing(NamedTuple):
    """Where a member is, and which partitions it has."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = NOTHING
    revoking: Assigned = NOTHING


class Resolved(NamedTuple):
    """The topics that a pattern stood for, by the cluster's image of a revision, at a time."""

    topics: frozenset[str]
    revision: int
    timestamp: int


class GroupEpoch(NamedTuple):
    group: str
    value: tuple[int, int] | None  # the epoch, and the hash of the topics that the members want


class PartitionMetadata(NamedTuple):
    """What 4.0 wrote about topics. Only its end is ever written."""

    group: str
    value: bool | None


class MemberRecord(NamedTuple):
    group: str
    member: str
    value: MemberDetails | None


class TargetEpoch(NamedTuple):
    group: str
    value: int | None


class TargetMember(NamedTuple):
    group: str
    member: str
    value: Assigned | None


class CurrentMember(NamedTuple):
    group: str
    member: str
    value: Standing | None


class PatternRecord(NamedTuple):
    group: str
    pattern: str
    value: Resolved | None


ConsumerRecord = (
    GroupEpoch | PartitionMetadata | MemberRecord | TargetEpoch | TargetMember | CurrentMember | PatternRecord
)


# -- to bytes


def encode_consumer_record(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    kind, encode = _ENCODERS[type(record)]
    key = INT16.pack(kind) + b"".join(map(string, record[:-1]))
    return key, None if record.value is None else VERSION + encode(record.value)


def _epoch(value: tuple[int, int]) -> bytes:
    epoch, metadata_hash = value
    return INT32.pack(epoch) + (_HASH_TAG + INT64.pack(metadata_hash) if metadata_hash else NO_TAGS)


def _details(details: MemberDetails) -> bytes:
    topics = sorted(details.topics)
    return b"".join(
        (
            compact_string(details.instance_id),
            compact_string(details.rack_id),
            compact_string(details.client_id),
            compact_string(details.client_host),
            varint(len(topics) + 1),
            *map(compact_string, topics),
            compact_string(details.pattern),
            INT32.pack(details.rebalance_timeout_ms),
            compact_string(details.assignor),
            _NOT_CLASSIC_TAG if details.classic is None else _classic(details.classic),
        )
    )


def _classic(classic: ClassicMember) -> bytes:
    parts = [INT32.pack(classic.session_timeout_ms), varint(len(classic.protocols) + 1)]
    for name, metadata in classic.protocols:
        parts += (compact_string(name), compact(metadata), NO_TAGS)
    data = b"\1" + b"".join(parts) + NO_TAGS
    return b"\1\0" + varint(len(data)) + data


def _assigned(assigned: Assigned) -> bytes:
    parts = [varint(len(assigned) + 1)]
    for topic_id, partitions in assigned.items():
        numbers = sorted(partitions)
        parts += (topic_id.bytes, varint(len(numbers) + 1), *map(INT32.pack, numbers), NO_TAGS)
    return b"".join(parts)


def _standing(standing: Standing) -> bytes:
    epochs = INT32.pack(standing.epoch) + INT32.pack(standing.previous_epoch)
    partitions = _assigned(standing.assigned) + _assigned(standing.revoking)
    return epochs + bytes((standing.state,)) + partitions + NO_TAGS


def _resolved(resolved: Resolved) -> bytes:
    topics = sorted(resolved.topics)
    names = b"".join(map(compact_string, topics))
    times = INT64.pack(resolved.revision) + INT64.pack(resolved.timestamp)
    return varint(len(topics) + 1) + names + times + NO_TAGS


# Class of a record: the type of its key, and how its value is written.
_ENCODERS: dict[type, tuple[int, Callable[[Any], bytes]]] = {
    GroupEpoch: (3, _epoch),
    PartitionMetadata: (4, lambda value: b"\1" + NO_TAGS),
    MemberRecord: (5, _details),
    TargetEpoch: (6, lambda value: INT32.pack(value) + NO_TAGS),
    TargetMember: (7, lambda value: _assigned(value) + NO_TAGS),
    CurrentMember: (8, _standing),
    PatternRecord: (16, _resolved),
}


# -- from bytes


def read_consumer_record(fields: dict[str, Any], content: dict[str, Any] | None) -> ConsumerRecord:
    """A record from what its key and its value say by name."""
    kind, read = CONSUMER_RECORDS[fields["type"]]
    record: ConsumerRecord = kind(*list(fields.values())[1:], None if content is None else read(content))
    return record


def _read_details(content: dict[str, Any]) -> MemberDetails:
    classic = content.get("classic_member")
    return MemberDetails(
        content["instance_id"],
        content["rack_id"],
        content["client_id"],
        content["client_host"],
        frozenset(content["subscribed_topic_names"]),
        content["subscribed_topic_regex"] or "",
        content["rebalance_timeout_ms"],
        content["server_assignor"],
        None
        if classic is None
        else ClassicMember(
            classic["session_timeout_ms"],
            tuple((entry["name"], entry["metadata"]) for entry in classic["supported_protocols"]),
        ),
    )


def _read_assigned(entries: list[dict[str, Any]]) -> Assigned:
    return {uuid.UUID(entry["topic_id"]): frozenset(entry["partitions"]) for entry in entries}


def _read_standing(content: dict[str, Any]) -> Standing:
    state = content["state"]
    return Standing(
        content["member_epoch"],
        content["previous_member_epoch"],
        MemberState(state) if state in iter(MemberState) else MemberState.UNKNOWN,
        _read_assigned(content["assigned_partitions"]),
        _read_assigned(content["partitions_pending_revocation"]),
    )


# Name of a key's type: the class of the record, and how its value is read.
CONSUMER_RECORDS: dict[str, tuple[Callable[..., Any], Callable[[dict[str, Any]], Any]]] = {
    "consumer_group_metadata": (
        GroupEpoch,
        lambda content: (content["epoch"], content.get("metadata_hash", 0)),
    ),
    "consumer_group_partition_metadata": (PartitionMetadata, lambda content: True),
    "consumer_group_member_metadata": (MemberRecord, _read_details),
    "consumer_group_target_assignment_metadata": (TargetEpoch, lambda content: content["assignment_epoch"]),
    "consumer_group_target_assignment_member": (
        TargetMember,
        lambda content: _read_assigned(content["topic_partitions"]),
    ),
    "consumer_group_current_member_assignment": (CurrentMember, _read_standing),
    "consumer_group_regular_expression": (
        PatternRecord,
        lambda content: Resolved(frozenset(content["topics"]), content["version"], content["timestamp"]),
    ),
}
