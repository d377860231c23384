"""What coordinators write, in readable fields."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from typing import Any

import pytest

from ottla.internal_topics.decoding import (
    decode_control_record,
    decode_group_record,
    decode_transaction_record,
    decoder_for,
)
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import list_partition
from ottla.storage.fs import RealFileSystem
from tests import corpus

FS = RealFileSystem()


def string(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


def data(raw: bytes) -> bytes:
    return pack(">i", len(raw)) + raw


def compact(raw: bytes) -> bytes:
    return bytes([len(raw) + 1]) + raw


@pytest.mark.parametrize("name", corpus.NAMES)
def test_committed_offsets_and_transactions_of_kafka_are_decoded(
    kafka_dirs: dict[str, Path], name: str
) -> None:
    seen: dict[str, list[tuple[dict[str, Any], Any]]] = {}
    for topic in ("__consumer_offsets", "__transaction_state"):
        decoder = decoder_for(topic)
        assert decoder is not None
        for found in dump_records(FS, list_partition(FS, str(kafka_dirs[name] / f"{topic}-0")), Query()):
            assert not isinstance(found, FoundDamage)
            if not found[0].row[7] & 0x20:
                key, value = decoder(found[1].key, found[1].value)
                assert isinstance(key, dict)
                seen.setdefault(key["type"], []).append((key, value))
    readers = [(k, v) for k, v in seen["offset_commit"] if k["group"] == "readers"]
    assert readers[-1][0] | {"type": ""} == {
        "type": "",
        "group": "readers",
        "topic": "codec-none",
        "partition": 0,
    }
    assert (readers[-1][1]["offset"], readers[-1][1]["metadata"]) == (21, "so far")
    statuses = {value["status"] for key, value in seen["transaction"] if value is not None}
    assert {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
    } <= statuses
    touched = [
        value["partitions"]
        for key, value in seen["transaction"]
        if value and key["transactional_id"] == "txn-one"
    ]
    assert [{"topic": "txn", "partitions": [0]}] in touched


def test_a_classic_group_shows_its_members_and_their_partitions() -> None:
    subscription = pack(">hi", 1, 1) + string("orders") + pack(">i", -1)
    assignment = pack(">hi", 0, 1) + string("orders") + pack(">iii", 2, 0, 3) + pack(">i", -1)
    member = (
        string("m-1") + pack(">h", -1) + string("client") + string("/127.0.0.1") + pack(">ii", 60_000, 10_000)
    )
    value = (
        pack(">h", 3) + string("consumer") + pack(">i", 4) + string("range") + string("m-1") + pack(">q", 123)
    )
    value += pack(">i", 1) + member + data(subscription) + data(assignment)
    key, decoded = decode_group_record(pack(">h", 2) + string("g"), value)
    assert key == {"type": "group_metadata", "group": "g"}
    assert isinstance(decoded, dict)
    assert (decoded["generation"], decoded["protocol"], decoded["leader"]) == (4, "range", "m-1")
    assert decoded["members"][0]["subscription"] == {"version": 1, "topics": ["orders"]}
    assert decoded["members"][0]["assignment"]["partitions"] == [{"topic": "orders", "partitions": [0, 3]}]
    assert decoded["members"][0]["group_instance_id"] is None


def test_flexible_values_and_their_tagged_fields_are_decoded() -> None:
    key = pack(">h", 1) + string("g") + string("t") + pack(">i", 5)
    tagged = bytes([2, 0, 16]) + bytes(15) + b"\x07" + bytes([9, 1, 0xFF])
    value = pack(">hqi", 4, 77, 3) + compact(b"meta") + pack(">q", 1234) + tagged
    _, decoded = decode_group_record(key, value)
    assert decoded == {
        "offset": 77,
        "leader_epoch": 3,
        "metadata": "meta",
        "commit_timestamp": 1234,
        "topic_id": "00000000-0000-0000-0000-000000000007",
    }


def test_new_group_records_are_named_with_their_key() -> None:
    assignment = bytes([2]) + bytes(16) + bytes([3]) + pack(">ii", 1, 2) + b"\0"
    value = pack(">h", 0) + assignment + b"\0"
    key, decoded = decode_group_record(pack(">h", 7) + string("g") + string("m"), value)
    assert key == {"type": "consumer_group_target_assignment_member", "group": "g", "member": "m"}
    assert isinstance(decoded, dict)
    assert decoded["topic_partitions"][0]["partitions"] == [1, 2]
    key, decoded = decode_group_record(pack(">h", 23) + string("g"), b"\0\0anything")
    assert (key, decoded) == ({"type": "streams_group_topology", "group": "g"}, b"\0\0anything")
    assert decode_group_record(pack(">h", 2) + string("g"), None)[1] is None


@pytest.mark.parametrize("size", range(40))
def test_what_is_cut_or_unknown_stays_bytes(size: int) -> None:
    key = (pack(">h", 1) + string("g") + string("t") + pack(">i", 5))[:size]
    value = (pack(">hqi", 3, 77, 3) + string("meta") + pack(">q", 1234))[:size]
    decoded_key, decoded_value = decode_group_record(key, value)
    assert decoded_key == key or isinstance(decoded_key, dict)
    assert decoded_value == value or isinstance(decoded_value, dict)
    transaction = decode_transaction_record(key, value)
    assert transaction[1] == value
    huge = (
        pack(">h", 2)
        + string("consumer")
        + pack(">i", 4)
        + string("p")
        + string("l")
        + pack(">qi", 1, 2**31 - 1)
    )
    assert decode_group_record(pack(">h", 2) + string("g"), huge)[1] == huge
    assert decode_group_record(pack(">h", 99), value) == (pack(">h", 99), value)


def test_control_records_are_named() -> None:
    assert decode_control_record(pack(">hh", 0, 0), pack(">hi", 0, 9)) == (
        {"control": "abort"},
        {"coordinator_epoch": 9},
    )
    assert decode_control_record(pack(">hh", 0, 1), pack(">hi", 0, 9))[0] == {"control": "commit"}
    assert decode_control_record(pack(">hh", 0, 2), b"x") == ({"control": "leader_change"}, b"x")
    assert decode_control_record(pack(">hh", 0, 77), b"x")[0] == {"control": "unknown (77)"}
    assert decode_control_record(b"\0", b"x") == (b"\0", b"x")
