"""The records of consumer groups are Kafka's, byte for byte."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.internal_topics.consumer_group_records import (
    ClassicMember,
    CurrentMember,
    GroupEpoch,
    MemberDetails,
    MemberRecord,
    MemberState,
    PartitionMetadata,
    PatternRecord,
    Resolved,
    Standing,
    TargetEpoch,
    TargetMember,
)
from ottla.internal_topics.decoding import decode_group_record
from ottla.internal_topics.fields import MalformedError
from ottla.internal_topics.group_records import GroupRecordFormat, SingleRecord
from tests.strategies import damaged

CODEC = GroupRecordFormat()
TOPIC = uuid.UUID("b9bbe6ca-548e-42e0-a4eb-4775cd0d76de")
CLIENT = ("conversation", "/127.0.0.1")
SUBSCRIPTION = b"\0\0\0\0\0\1\0\x08migrated\xff\xff\xff\xff"

# What Apache Kafka 4.2.0 wrote: key, value, and what they mean.
WRITTEN: list[tuple[str, str | None, SingleRecord]] = [
    (
        "0003000c6d6f6465726e2d74776f2d30",
        "0000000000010100084b2b52d7e12d1f83",
        GroupEpoch("modern-two-0", (1, 5416514063992430467)),
    ),
    ("0003000e6d6f6465726e2d61646d696e2d30", None, GroupEpoch("modern-admin-0", None)),
    ("0004000e6d6f6465726e2d61646d696e2d30", None, PartitionMetadata("modern-admin-0", None)),
    (
        "0005000c6d6f6465726e2d74776f2d3000036f6e65",
        "0000000372310d636f6e766572736174696f6e0b2f3132372e302e302e3102076d6f6465726e010000ea600001000100",
        MemberRecord(
            "modern-two-0",
            "one",
            MemberDetails(None, "r1", *CLIENT, frozenset({"modern"}), rebalance_timeout_ms=60_000),
        ),
    ),
    (
        "0005000f6d696772617465642d7374617469630026692d32626132366635352d366266622d343739322d613666372d633632663135"
        "386639616662",
        "00000269000d636f6e766572736174696f6e0b2f3132372e302e302e3102096d69677261746564010000ea6000010023010000ea60"
        "020672616e67651500000000000100086d69677261746564ffffffff0000",
        MemberRecord(
            "migrated-static",
            "i-2ba26f55-6bfb-4792-a6f7-c62f158f9afb",
            MemberDetails(
                "i", None, *CLIENT, frozenset({"migrated"}), "", 60_000, None,
                ClassicMember(60_000, (("range", SUBSCRIPTION),)),
            ),
        ),
    ),
    ("0006000c6d6f6465726e2d74776f2d30", "00000000000100", TargetEpoch("modern-two-0", 1)),
    ("0006000e6d6f6465726e2d61646d696e2d30", None, TargetEpoch("modern-admin-0", None)),
    (
        "0007000c6d6f6465726e2d74776f2d3000036f6e65",
        "000002b9bbe6ca548e42e0a4eb4775cd0d76de05000000000000000100000002000000030000",
        TargetMember("modern-two-0", "one", {TOPIC: frozenset(range(4))}),
    ),
    (
        "0008000c6d6f6465726e2d74776f2d3000036f6e65",
        "000000000001000000010102b9bbe6ca548e42e0a4eb4775cd0d76de0300000000000000010002b9bbe6ca548e42e0a4eb4775cd0d"
        "76de0300000002000000030000",
        CurrentMember(
            "modern-two-0",
            "one",
            Standing(
                1, 1, MemberState.UNREVOKED_PARTITIONS, {TOPIC: frozenset({0, 1})}, {TOPIC: frozenset({2, 3})}
            ),
        ),
    ),
    (
        "0008000f6d6f6465726e2d7374617469632d3000036f6e65",
        "0000fffffffe000000000002b9bbe6ca548e42e0a4eb4775cd0d76de0500000000000000010000000200000003000100",
        CurrentMember("modern-static-0", "one", Standing(-2, 0, assigned={TOPIC: frozenset(range(4))})),
    ),
    (
        "0010000a7061747465726e732d3000097061747465726e2d61",
        "0000020a7061747465726e2d610000000000000049000001a1ded9b7ea00",
        PatternRecord("patterns-0", "pattern-a", Resolved(frozenset({"pattern-a"}), 73, 1794740172778)),
    ),
    ("0010000a7061747465726e732d3000097061747465726e2d61", None, PatternRecord("patterns-0", "pattern-a", None)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "record"), WRITTEN, ids=lambda part: type(part).__name__)
def test_records_are_read_and_written_as_kafka_writes_them(
    key: str, value: str | None, record: SingleRecord
) -> None:
    written = bytes.fromhex(key), None if value is None else bytes.fromhex(value)
    assert CODEC.decode(*written) == record
    assert CODEC.encode(record) == written


names = st.text(max_size=20)
assigned = st.dictionaries(st.uuids(), st.frozensets(st.integers(0, 300), min_size=1, max_size=5), max_size=3)
classic = st.builds(
    ClassicMember, st.integers(0, 1 << 30), st.lists(st.tuples(names, st.binary())).map(tuple)
)
details = st.builds(
    MemberDetails, st.none() | names, st.none() | names, names, names, st.frozensets(names, max_size=4), names,
    st.integers(-1, 1 << 30), st.none() | names, st.none() | classic,
)  # fmt: skip
epochs = st.integers(-2, 1 << 30)
standings = st.builds(Standing, epochs, epochs, st.sampled_from(MemberState), assigned, assigned)
resolved = st.builds(
    Resolved, st.frozensets(names, max_size=4), st.integers(0, 1 << 40), st.integers(0, 1 << 40)
)
hashes = st.integers(-(1 << 63), (1 << 63) - 1)
records = st.one_of(
    st.builds(GroupEpoch, names, st.none() | st.tuples(epochs, hashes)),
    st.builds(PartitionMetadata, names, st.none() | st.just(True)),
    st.builds(MemberRecord, names, names, st.none() | details),
    st.builds(TargetEpoch, names, st.none() | epochs),
    st.builds(TargetMember, names, names, st.none() | assigned),
    st.builds(CurrentMember, names, names, st.none() | standings),
    st.builds(PatternRecord, names, names, st.none() | resolved),
)


@settings(max_examples=200)
@given(records)
def test_a_record_is_read_back_as_it_was_written(record: SingleRecord) -> None:
    assert CODEC.decode(*CODEC.encode(record)) == record


@given(records, st.integers(0, 200))
def test_a_record_that_is_cut_short_is_refused(record: SingleRecord, size: int) -> None:
    key, value = CODEC.encode(record)
    if value is not None and size < len(value):
        with pytest.raises(MalformedError):
            CODEC.decode(key, value[:size])


@given(records, st.data())
def test_damaged_bytes_are_read_or_refused(record: SingleRecord, data: st.DataObject) -> None:
    key, value = CODEC.encode(record)
    with suppress(MalformedError):
        CODEC.decode(damaged(key, data), damaged(value or b"", data))


def test_a_dump_names_the_fields() -> None:
    key, value = CODEC.encode(WRITTEN[4][2])
    said = decode_group_record(key, value)
    assert said[0] == {
        "type": "consumer_group_member_metadata",
        "group": "migrated-static",
        "member": "i-2ba26f55-6bfb-4792-a6f7-c62f158f9afb",
    }
    assert isinstance(said[1], dict)
    assert said[1]["classic_member"]["supported_protocols"] == [{"name": "range", "metadata": SUBSCRIPTION}]


def test_what_4_0_wrote_about_topics_is_read_and_taken_back() -> None:
    """ConsumerGroupPartitionMetadataValue, by Kafka's description of it."""
    value = bytes.fromhex("0000") + b"\2" + TOPIC.bytes + b"\2o" + (2).to_bytes(4, "big")
    value += b"\2" + bytes(4) + b"\2\3r1" + b"\0" + b"\0" + b"\0"
    key = b"\0\4\0\1g"
    assert CODEC.decode(key, value) == PartitionMetadata("g", True)
    said = decode_group_record(key, value)[1]
    assert said == {
        "topics": [
            {
                "topic_id": str(TOPIC),
                "topic_name": "o",
                "num_partitions": 2,
                "partition_metadata": [{"partition": 0, "racks": ["r1"]}],
            }
        ]
    }
