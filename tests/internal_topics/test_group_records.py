"""The records of `__consumer_offsets`, byte for byte Kafka's."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.internal_topics.commit_kernel import CommittedOffset
from ottla.internal_topics.group_records import (
    GroupMetadata,
    GroupRecordFormat,
    GroupValue,
    MemberMetadata,
    OffsetCommit,
    SingleRecord,
)
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import list_partition
from ottla.storage.fs import RealFileSystem
from tests import corpus

FS = RealFileSystem()
CODEC = GroupRecordFormat()

texts = st.text(st.characters(codec="utf-8"), max_size=200)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
members = st.builds(
    MemberMetadata, texts, st.none() | texts, texts, texts, int32s, int32s, st.binary(), st.binary()
)
values = st.builds(
    GroupValue,
    texts,
    int32s,
    st.none() | texts,
    st.none() | texts,
    int64s,
    st.lists(members, max_size=3).map(tuple),
)
plain_commits = st.builds(
    CommittedOffset,
    int64s,
    int32s,
    texts,
    int64s,
    st.just(-1),
    st.none() | st.uuids().filter(lambda found: found.int != 0),
)
# Version 1, the only one with an expiry, has no leader epoch and no topic id.
expiring_commits = st.builds(
    CommittedOffset, int64s, st.just(-1), texts, int64s, st.integers(0, 2**63 - 1), st.none()
)
records = st.one_of(
    st.builds(OffsetCommit, texts, texts, int32s, st.none() | plain_commits | expiring_commits),
    st.builds(GroupMetadata, texts, st.none() | values),
)


@given(records)
def test_a_record_is_read_as_it_was_written(record: SingleRecord) -> None:
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_a_commit_has_the_bytes_that_kafka_4_2_writes() -> None:
    commit = CommittedOffset(258, 3, "so far", 7, topic_id=uuid.UUID(int=5))
    key, value = CODEC.encode(OffsetCommit("g", "t", 2, commit))
    assert key.hex() == "0001" + "000167" + "000174" + "00000002"
    assert value is not None
    assert value.hex() == (
        "0004"
        + "0000000000000102"
        + "00000003"
        + "07736f20666172"
        + "0000000000000007"
        + "010010"
        + "05".zfill(32)
    )


@pytest.mark.parametrize("name", [name for name in corpus.NAMES if "2.8" not in name])
def test_what_kafka_wrote_is_written_the_same(tmp_path: Path, name: str) -> None:
    directory = corpus.unpack(name, tmp_path)
    seen = 0
    for found in dump_records(FS, list_partition(FS, str(directory / "__consumer_offsets-0")), Query()):
        assert not isinstance(found, FoundDamage)
        record = None if found[0].row[7] & 0x20 else CODEC.decode(found[1].key, found[1].value)
        if record is None:
            continue
        key, value = CODEC.encode(record)
        assert key == found[1].key
        if isinstance(record, GroupMetadata) or "4.2" in name:  # before 4.2, commits were of version 3
            assert value == found[1].value
            seen += value is not None
    assert seen
