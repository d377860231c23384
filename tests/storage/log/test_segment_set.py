"""Finding segments by offset."""

from __future__ import annotations

import pytest

from ottla.config import LogConfig
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_set import SegmentSet
from ottla.testing.disk import SimulatedDisk

BASES = [0, 10, 20, 35]


def segment(base: int) -> Segment:
    return Segment(SimulatedDisk(), "/", base, LogConfig())


@pytest.fixture
def segments() -> SegmentSet:
    return SegmentSet([segment(base) for base in reversed(BASES)])


def bases(found: list[Segment]) -> list[int]:
    return [segment.base_offset for segment in found]


def test_segments_are_in_order(segments: SegmentSet) -> None:
    assert segments.bases == bases(list(segments)) == BASES
    assert (segments.first.base_offset, segments.active.base_offset, len(segments)) == (0, 35, 4)
    assert 20 in segments
    assert 21 not in segments
    assert 99 not in segments


@pytest.mark.parametrize(
    ("offset", "found"),
    [(-5, BASES), (0, BASES), (9, BASES), (10, BASES[1:]), (34, BASES[2:]), (35, [35]), (999, [35])],
)
def test_from_an_offset_on(segments: SegmentSet, offset: int, found: list[int]) -> None:
    assert bases(segments.from_offset(offset)) == found


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, 35, [0, 10, 20]),
        (0, 36, BASES),
        (5, 10, [0]),
        (5, 11, [0, 10]),
        (10, 10, []),
        (12, 5, []),
        (40, 50, [35]),
        (-1, 1, [0]),
    ],
)
def test_between_two_offsets(segments: SegmentSet, start: int, end: int, found: list[int]) -> None:
    assert bases(segments.between(start, end)) == found


def test_the_next_base(segments: SegmentSet) -> None:
    assert [segments.next_base(segment) for segment in segments] == [10, 20, 35, None]


def test_adding_removing_replacing(segments: SegmentSet) -> None:
    segments.add(segment(15))
    assert segments.bases == [0, 10, 15, 20, 35]
    old = segments.between(10, 20)
    segments.replace(old, [segment(12), segment(10)])
    assert segments.bases == [0, 10, 12, 20, 35]
    segments.remove(segments.first)
    assert segments.first.base_offset == 10
