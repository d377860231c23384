"""Pure parts: offsets, limits and cuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.names import TopicPartition
from ottla.spark import offsets
from ottla.spark.read import ranges
from ottla.spark.transport.base import Mark

_TP = TopicPartition("t", 0)


def test_offsets_are_written_as_the_connector_writes_them() -> None:
    given = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 1, TopicPartition("a", 2): 5}
    assert offsets.render(given) == '{"a":{"2":5,"10":1},"b":{"1":7}}'
    assert offsets.parse(offsets.render(given), "x") == given


_backlogs = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1000)), min_size=1, max_size=6)


@given(_backlogs, st.integers(1, 2000))
def test_a_limit_is_kept_shared_and_never_stands_still(backlogs: list[tuple[int, int]], most: int) -> None:
    start = {TopicPartition("t", number): first for number, (first, _) in enumerate(backlogs)}
    end = {TopicPartition("t", number): first + size for number, (first, size) in enumerate(backlogs)}
    limited = offsets.limit(start, end, most)
    assert offsets.count(start, limited) == min(most, offsets.count(start, end))
    assert all(start[tp] <= limited[tp] <= end[tp] for tp in end)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 500)), min_size=1, max_size=30),
    st.integers(1, 3000),
    st.none() | st.integers(1, 20),
)
def test_splits_cover_a_partition_without_overlap(
    steps: list[tuple[int, int]], step: int, max_records: int | None
) -> None:
    marks = [Mark(100, 0)]
    for more_offsets, more_bytes in steps:
        marks.append(Mark(marks[-1].offset + more_offsets, marks[-1].size_bytes + more_bytes))
    splits = ranges.cut(_TP, marks, step, max_records)
    assert [split.start for split in splits] == [100, *(split.end for split in splits[:-1])]
    assert splits[-1].end == marks[-1].offset
    assert all(split.start < split.end and split.origin == 100 for split in splits)
    if max_records is not None:
        assert all(split.end - split.start <= max_records for split in splits)


def test_enough_splits_for_a_minimum_are_cut() -> None:
    sizes = {TopicPartition("t", number): 1_000_000 for number in range(2)}
    assert ranges.step_bytes(sizes, 64 << 20, None) == 64 << 20
    assert ranges.step_bytes(sizes, 64 << 20, 2) == 64 << 20
    step = ranges.step_bytes(sizes, 64 << 20, 20)
    marks = [Mark(offset, offset * 10) for offset in range(0, 100_001, 100)]
    assert 2 * len(ranges.cut(_TP, marks, step)) >= 20


def test_what_cannot_be_read_belongs_to_one_split() -> None:
    splits = ranges.cut(_TP, [Mark(10, 0), Mark(20, 100), Mark(30, 200)], 100)
    assert len(splits) == 2
    for first, last in ((0, 12), (5, 40), (15, 25), (20, 21), (29, 99)):
        assert sum(split.owns(first, last) for split in splits) == 1
    assert not any(split.owns(3, 10) for split in splits)  # before the read begins
    assert not any(split.owns(30, 99) for split in splits)  # behind its end
