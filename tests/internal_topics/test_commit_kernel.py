"""The kernel's loops over the offsets of a commit do what is done to them one by one; compiled and interpreted."""

from __future__ import annotations

import uuid
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.offsets.committed import CommittedOffsets, Total
from ottla.internal_topics import commit_kernel
from ottla.internal_topics.group_records import GroupRecordFormat, OffsetCommits
from ottla.protocol.commit_topic import Entry
from ottla.records.kernel import encode_records
from tests import kernels

CODEC = GroupRecordFormat()
BUILDS = [
    pytest.param(commit_kernel, id="installed"),
    pytest.param(kernels.interpreted(commit_kernel), id="interpreted"),
]

texts = st.text(st.characters(codec="utf-8"), max_size=150)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
entries = st.lists(st.tuples(st.integers(0, 2**31 - 1), int64s, int32s, texts), max_size=5)
commits = st.builds(
    OffsetCommits,
    texts,
    texts,
    st.none() | st.uuids().filter(lambda found: found.int != 0),
    entries,
    int64s,
    st.just(-1),
)


@given(commits, st.integers(-1, 2**40), st.integers(0, 2**20))
def test_commits_are_written_as_if_they_were_written_one_by_one(
    commits: OffsetCommits, time_delta: int, first_delta: int
) -> None:
    singles = [(time_delta, *CODEC.encode(record), ()) for record in commits.singly()]
    expected = bytearray(b"before")
    encode_records(expected, singles, 0, range(first_delta, first_delta + len(singles)))
    batch = bytearray(b"before")
    assert CODEC.write(batch, [commits], time_delta, first_delta) == len(singles)
    assert batch == expected


@given(commits, st.integers(0, 2**40))
def test_commits_are_replayed_as_if_they_came_one_by_one(commits: OffsetCommits, written_at: int) -> None:
    together, singly = CommittedOffsets(Total()), CommittedOffsets(Total())
    together.replay_many(commits, written_at, -1)
    for offset, record in enumerate(commits.singly(), written_at):
        singly.replay(record, offset, -1)
    found = together.of(commits.group)
    assert found == singly.of(commits.group)
    assert {place: value.written_at for place, value in found.items()} == {
        place: value.written_at for place, value in singly.of(commits.group).items()
    }


@pytest.mark.parametrize("kernel", BUILDS)
def test_both_builds_write_the_bytes_that_kafka_4_2_writes(kernel: ModuleType) -> None:
    batch = bytearray(b"header")
    kernel.put_commits(batch, 3, 64, b"key", [(2, 258, 3, "so far"), (-1, -1, -1, "")], 7, b"\0")
    first = "00" "06" "8001" "0e" + b"key".hex() + "00000002"  # fmt: skip
    first += "3c" "0004" "0000000000000102" "00000003" "07736f20666172" "0000000000000007" "00" "00"  # fmt: skip
    second = "00" "06" "8201" "0e" + b"key".hex() + "ffffffff"  # fmt: skip
    second += "30" "0004" "ffffffffffffffff" "ffffffff" "01" "0000000000000007" "00" "00"  # fmt: skip
    records = b"".join(bytes((len(body) * 2,)) + body for body in map(bytes.fromhex, (first, second)))
    assert bytes(batch) == b"header" + records


@pytest.mark.parametrize("kernel", BUILDS)
def test_partitions_that_a_topic_does_not_have_are_found(kernel: ModuleType) -> None:
    asked: list[Entry] = [(0, 5, -1, ""), (3, 5, -1, "")]
    assert kernel.are_there(asked, 4)
    assert not kernel.are_there(asked, 3)
    assert not kernel.are_there([(-1, 5, -1, "")], 3)
    assert kernel.are_there([], 0)


@pytest.mark.parametrize("kernel", BUILDS)
def test_offsets_are_stored_by_partition_and_the_last_one_counts(kernel: ModuleType) -> None:
    topic_id = uuid.UUID(int=5)
    told: list[Entry] = [(1, 10, 0, ""), (2, 20, 1, "so far"), (1, 11, 2, "")]
    stored: dict[int, commit_kernel.CommittedOffset] = {2: kernel.CommittedOffset(1, 1, "", 1)}
    kernel.store_commits(stored, told, 100, 7, 8, topic_id)
    assert stored == {
        1: kernel.CommittedOffset(11, 2, "", 7, 8, topic_id),
        2: kernel.CommittedOffset(20, 1, "so far", 7, 8, topic_id),
    }
    assert (stored[1].written_at, stored[2].written_at) == (102, 101)
    assert stored[1] != stored[2]
    assert kernel.longest_metadata(told) == 6
    assert kernel.longest_metadata([]) == 0
    assert kernel.partitions_of(told) == (1, 2, 1)
