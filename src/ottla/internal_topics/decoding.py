"""Decodes what coordinators and controllers write: `__consumer_offsets`, `__transaction_state` and control records.

A key begins with its type (int16), a value with the version of its fields (int16). Types whose fields are not all
listed here are still named, with what their key says. `read_*` refuses bytes that do not fit their description;
`decode_*`, for people, leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.internal_topics.fields import TAGS, MalformedError, Reader

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

_GROUP = {"group": "string"}
_MEMBER = {"group": "string", "member": "string"}
_PARTITION = {"group": "string", "topic": "string", "partition": "int32"}

# Type of a key in __consumer_offsets: its name and fields. 9 and 18 were never released.
_GROUP_KEYS: dict[int, tuple[str, dict[str, str]]] = {
    0: ("offset_commit", _PARTITION),
    1: ("offset_commit", _PARTITION),
    2: ("group_metadata", _GROUP),
    3: ("consumer_group_metadata", _GROUP),
    4: ("consumer_group_partition_metadata", _GROUP),
    5: ("consumer_group_member_metadata", _MEMBER),
    6: ("consumer_group_target_assignment_metadata", _GROUP),
    7: ("consumer_group_target_assignment_member", _MEMBER),
    8: ("consumer_group_current_member_assignment", _MEMBER),
    10: ("share_group_member_metadata", _MEMBER),
    11: ("share_group_metadata", _GROUP),
    12: ("share_group_target_assignment_metadata", _GROUP),
    13: ("share_group_target_assignment_member", _MEMBER),
    14: ("share_group_current_member_assignment", _MEMBER),
    15: ("share_group_state_partition_metadata", _GROUP),
    16: ("consumer_group_regular_expression", {"group": "string", "regular_expression": "string"}),
    17: ("streams_group_metadata", _GROUP),
    19: ("streams_group_member_metadata", _MEMBER),
    20: ("streams_group_target_assignment_metadata", _GROUP),
    21: ("streams_group_target_assignment_member", _MEMBER),
    22: ("streams_group_current_member_assignment", _MEMBER),
    23: ("streams_group_topology", _GROUP),
}

_KINDS = {name: kind for kind, (name, _) in _GROUP_KEYS.items()}

_ASSIGNED = [{"topic_id": "uuid", "partitions": ["int32"]}]
_CLASSIC_MEMBER = {
    "session_timeout_ms": "int32",
    "supported_protocols": [{"name": "string", "metadata": "bytes"}],
}
_TOPIC_METADATA = {
    "topic_id": "uuid",
    "topic_name": "string",
    "num_partitions": "int32",
    "partition_metadata": [{"partition": "int32", "racks": ["string"]}],
}
_COMMIT = {"offset": "int64", "metadata": "string", "commit_timestamp": "int64"}
_COMMIT_3 = {"offset": "int64", "leader_epoch": "int32", "metadata": "string", "commit_timestamp": "int64"}


def _group_metadata(version: int) -> dict[str, Any]:
    """The classic group's record: fields came in with versions 1, 2 and 3; 4 only changed the encoding."""
    member: dict[str, Any] = {"member_id": "string"}
    if version >= 3:
        member["group_instance_id"] = "string?"
    member |= {"client_id": "string", "client_host": "string"}
    if version >= 1:
        member["rebalance_timeout_ms"] = "int32"
    member |= {"session_timeout_ms": "int32", "subscription": "bytes", "assignment": "bytes"}
    group: dict[str, Any] = {
        "protocol_type": "string",
        "generation": "int32",
        "protocol": "string?",
        "leader": "string?",
    }
    if version >= 2:
        group["current_state_timestamp"] = "int64"
    return group | {"members": [member]}


# Type of a key: by version of its value, the fields and whether they are encoded flexibly.
_GROUP_VALUES: dict[int, dict[int, tuple[Mapping[Any, Any], bool]]] = {
    0: {0: (_COMMIT, False)},
    1: {
        0: (_COMMIT, False),
        1: (_COMMIT | {"expire_timestamp": "int64"}, False),
        2: (_COMMIT, False),
        3: (_COMMIT_3, False),
        4: (_COMMIT_3 | {TAGS: {0: ("topic_id", "uuid")}}, True),
    },
    2: {version: (_group_metadata(version), version >= 4) for version in range(5)},
    3: {0: ({"epoch": "int32", TAGS: {0: ("metadata_hash", "int64")}}, True)},
    4: {0: ({"topics": [_TOPIC_METADATA]}, True)},
    5: {
        0: (
            {
                "instance_id": "string?",
                "rack_id": "string?",
                "client_id": "string",
                "client_host": "string",
                "subscribed_topic_names": ["string"],
                "subscribed_topic_regex": "string?",
                "rebalance_timeout_ms": "int32",
                "server_assignor": "string?",
                TAGS: {0: ("classic_member", (_CLASSIC_MEMBER,))},
            },
            True,
        )
    },
    6: {0: ({"assignment_epoch": "int32"}, True)},
    7: {0: ({"topic_partitions": _ASSIGNED}, True)},
    8: {
        0: (
            {
                "member_epoch": "int32",
                "previous_member_epoch": "int32",
                "state": "int8",
                "assigned_partitions": _ASSIGNED,
                "partitions_pending_revocation": _ASSIGNED,
            },
            True,
        )
    },
    11: {0: ({"epoch": "int32", "metadata_hash": "int64"}, True)},
    12: {0: ({"assignment_epoch": "int32"}, True)},
    13: {0: ({"topic_partitions": _ASSIGNED}, True)},
    16: {0: ({"topics": ["string"], "version": "int64", "timestamp": "int64"}, True)},
    17: {0: ({"epoch": "int32", "metadata_hash": "int64"}, True)},
    20: {0: ({"assignment_epoch": "int32"}, True)},
}

_TRANSACTION = {
    "producer_id": "int64",
    "producer_epoch": "int16",
    "timeout_ms": "int32",
    "status": "int8",
    "partitions": [{"topic": "string", "partitions": ["int32"]}],
    "last_update_timestamp": "int64",
    "start_timestamp": "int64",
}
_TRANSACTION_TAGS = {
    0: ("previous_producer_id", "int64"),
    1: ("next_producer_id", "int64"),
    2: ("client_transaction_version", "int16"),
    3: ("next_producer_epoch", "int16"),
}
_TRANSACTION_VALUES: dict[int, tuple[Mapping[Any, Any], bool]] = {
    0: (_TRANSACTION, False),
    1: (_TRANSACTION | {TAGS: _TRANSACTION_TAGS}, True),
}
_STATUS = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)

_CONTROL = (
    "abort",
    "commit",
    "leader_change",
    "snapshot_header",
    "snapshot_footer",
    "kraft_version",
    "kraft_voters",
)

# The consumer protocol inside classic groups; later versions only add fields at the end.
_SUBSCRIPTION = {"version": "int16", "topics": ["string"]}
_ASSIGNMENT = {"version": "int16", "partitions": [{"topic": "string", "partitions": ["int32"]}]}

Fields = dict[str, Any]
Decoded = bytes | Fields | None
Decoder = Callable[[bytes | None, bytes | None], tuple[Decoded, Decoded]]
RecordReader = Callable[[bytes | None, bytes | None], tuple[Fields, Fields | None]]


class UnknownRecordError(MalformedError):
    """A type or version that is not listed here: a newer Kafka may have written it."""


def decoder_for(topic: str | None) -> Decoder | None:
    """What makes key and value of that topic's records readable, or None."""
    return {CONSUMER_OFFSETS: decode_group_record, TRANSACTION_STATE: decode_transaction_record}.get(
        topic or ""
    )


def reader_for(topic: str | None) -> RecordReader | None:
    """What reads key and value of that topic's records, or says why they cannot be understood; None for others."""
    return {CONSUMER_OFFSETS: read_group_record, TRANSACTION_STATE: read_transaction_record}.get(topic or "")


def decode_group_record(key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded]:
    decoded, fields = _as_far_as_possible(_group_key, _group_value, key, value)
    if isinstance(fields, dict):
        _open_members(fields)
    return decoded, fields


def read_group_record(key: bytes | None, value: bytes | None) -> tuple[Fields, Fields | None]:
    """As `decode_group_record`, but what members subscribe to and have stays bytes; MalformedError, or
    UnknownRecordError, for what cannot be understood. The values of share and streams groups are left out."""
    decoded = _group_key(key)
    return decoded, _group_value(decoded, value)


def _group_key(key: bytes | None) -> Fields:
    reader = Reader(key or b"")
    kind = reader.integer("int16")
    if kind not in _GROUP_KEYS:
        raise UnknownRecordError(f"a key of type {kind}")
    name, fields = _GROUP_KEYS[kind]
    return {"type": name, **reader.struct(fields)}


def _group_value(key: Fields, value: bytes | None) -> Fields | None:
    versions = _GROUP_VALUES.get(_KINDS[key["type"]])
    return _value(value, versions) if versions else None


def subscribed_topics(subscription: bytes) -> list[str] | None:
    """What a consumer of a classic group asks for; None if that cannot be read."""
    try:
        topics: list[str] = Reader(subscription).struct(_SUBSCRIPTION)["topics"]
    except MalformedError:
        return None
    return topics


def decode_transaction_record(key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded]:
    decoded, fields = _as_far_as_possible(_transaction_key, _transaction_value, key, value)
    if isinstance(fields, dict):
        fields["status"] = _STATUS[fields["status"]]
    return decoded, fields


def read_transaction_record(key: bytes | None, value: bytes | None) -> tuple[Fields, Fields | None]:
    """As `decode_transaction_record`, but the status stays a number; MalformedError, or UnknownRecordError, for what
    cannot be understood."""
    decoded = _transaction_key(key)
    return decoded, _transaction_value(decoded, value)


def _transaction_key(key: bytes | None) -> Fields:
    reader = Reader(key or b"")
    kind = reader.integer("int16")
    if kind != 0:
        raise UnknownRecordError(f"a key of type {kind}")
    return {"type": "transaction", **reader.struct({"transactional_id": "string"})}


def _transaction_value(_: Fields, value: bytes | None) -> Fields | None:
    fields = _value(value, _TRANSACTION_VALUES)
    if fields is not None and not 0 <= fields["status"] < len(_STATUS):
        raise MalformedError(f"a transaction in state {fields['status']}")
    return fields


def _as_far_as_possible(
    read_key: Callable[[bytes | None], Fields],
    read_value: Callable[[Fields, bytes | None], Fields | None],
    key: bytes | None,
    value: bytes | None,
) -> tuple[Decoded, Decoded]:
    """For people: what cannot be understood stays bytes."""
    try:
        decoded = read_key(key)
    except MalformedError:
        return key, value
    try:
        fields = read_value(decoded, value)
    except MalformedError:
        return decoded, value
    return decoded, value if fields is None else fields


def decode_control_record(key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded]:
    """The record of a control batch: a transaction's end, or a step of a KRaft log."""
    try:
        kind = Reader(key or b"").struct({"version": "int16", "type": "int16"})["type"]
        name = _CONTROL[kind] if 0 <= kind < len(_CONTROL) else f"unknown ({kind})"
        if kind > 1 or value is None:
            return {"control": name}, value
        marker = Reader(value).struct({"version": "int16", "coordinator_epoch": "int32"})
    except MalformedError:
        return key, value
    return {"control": name}, {"coordinator_epoch": marker["coordinator_epoch"]}


def _value(value: bytes | None, versions: Mapping[int, tuple[Mapping[Any, Any], bool]]) -> Fields | None:
    if value is None:
        return None
    reader = Reader(value)
    version = reader.integer("int16")
    if version not in versions:
        raise UnknownRecordError(f"a value of version {version}")
    fields, reader.flexible = versions[version]
    return reader.struct(fields)


def _open_members(group: dict[str, Any]) -> None:
    """Say which topics a consumer asked for and which partitions it has."""
    if group.get("protocol_type") != "consumer":
        return
    for member in group["members"]:
        for name, fields in (("subscription", _SUBSCRIPTION), ("assignment", _ASSIGNMENT)):
            try:
                member[name] = Reader(member[name]).struct(fields)
            except MalformedError:
                continue
