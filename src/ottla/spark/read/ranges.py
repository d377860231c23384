"""From offsets and marks to splits: how the reading is dealt out to tasks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ottla.names import TopicPartition
from ottla.spark.transport.base import Mark


@dataclass(frozen=True)
class Split:
    """What one task reads: the offsets [start, end) of a partition, about `size_bytes` of log."""

    partition: TopicPartition
    start: int
    end: int
    size_bytes: int
    origin: int  # where the first split of this partition starts

    def owns(self, from_offset: int, to_offset: int) -> bool:
        """Whether this split, of all of them, is the one to report that these offsets cannot be read."""
        return to_offset > self.origin and self.start <= max(from_offset, self.origin) < self.end


def step_bytes(sizes: Mapping[TopicPartition, int], target_bytes: int, min_partitions: int | None) -> int:
    """How far apart cuts must be for tasks of the target size, and for enough of them."""
    total = sum(sizes.values())
    if min_partitions is None or min_partitions <= len(sizes):
        return target_bytes
    # A partition's last piece is on average half as long as the others.
    return max(1, min(target_bytes, total // (min_partitions + len(sizes))))


def cut(
    partition: TopicPartition, marks: Sequence[Mark], step: int, max_records: int | None = None
) -> list[Split]:
    """The splits of one partition. Marks that lie closer together than half a step are passed over."""
    splits: list[Split] = []
    last = marks[0]
    for mark in marks[1:-1]:
        if (
            mark.size_bytes - last.size_bytes >= step / 2
            and marks[-1].size_bytes - mark.size_bytes >= step / 2
        ):
            size_bytes = mark.size_bytes - last.size_bytes
            splits.append(Split(partition, last.offset, mark.offset, size_bytes, marks[0].offset))
            last = mark
    end = marks[-1]
    if end.offset > last.offset:
        size_bytes = end.size_bytes - last.size_bytes
        splits.append(Split(partition, last.offset, end.offset, size_bytes, marks[0].offset))
    return [piece for split in splits for piece in _pieces(split, max_records)]


def between(partition: TopicPartition, edges: Sequence[int], first: int) -> list[Split]:
    """Splits that were cut before, by their edges; what lies before the offset `first` is gone.

    A split of which nothing is left stays, empty: tasks are known by their numbers.
    """
    return [Split(partition, min(max(low, first), high), high, 0, first) for low, high in pairwise(edges)]


def _pieces(split: Split, max_records: int | None) -> list[Split]:
    count = split.end - split.start
    if max_records is None or count <= max_records:
        return [split]
    number = -(-count // max_records)
    edges = [split.start + count * index // number for index in range(number + 1)]
    return [
        replace(split, start=edges[index], end=edges[index + 1], size_bytes=split.size_bytes // number)
        for index in range(number)
    ]
