"""The segments of one log, ordered by base offset."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from ottla.storage.log.segment import Segment


class SegmentSet:
    """Finds the segment for an offset."""

    def __init__(self, segments: list[Segment] | None = None) -> None:
        self._segments = sorted(segments or [], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, base_offset: int) -> bool:
        at = bisect_left(self._bases, base_offset)
        return at < len(self._bases) and self._bases[at] == base_offset

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment whose range holds `offset`, and all after it."""
        return self._segments[max(0, bisect_right(self._bases, offset) - 1) :]

    def between(self, start_offset: int, end_offset: int) -> list[Segment]:
        """The segments that may hold offsets in [start_offset, end_offset)."""
        return self.from_offset(start_offset)[
            : max(
                0, bisect_left(self._bases, end_offset) - max(0, bisect_right(self._bases, start_offset) - 1)
            )
        ]

    def next_base(self, segment: Segment) -> int | None:
        """The base offset of the segment after this one."""
        at = bisect_right(self._bases, segment.base_offset)
        return self._bases[at] if at < len(self._bases) else None

    def add(self, segment: Segment) -> None:
        at = bisect_left(self._bases, segment.base_offset)
        self._segments.insert(at, segment)
        self._bases.insert(at, segment.base_offset)

    def remove(self, segment: Segment) -> None:
        at = self._segments.index(segment)
        del self._segments[at], self._bases[at]

    def replace(self, old: list[Segment], new: list[Segment]) -> None:
        for segment in old:
            self.remove(segment)
        for segment in new:
            self.add(segment)
