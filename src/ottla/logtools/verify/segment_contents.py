"""What the batches of a log file say by themselves, whatever the file is called.

A batch's offset is not covered by its CRC, so that one header alone is not believed: the offsets that count are those
of the heaviest chain of batches in ascending order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from ottla.logtools.index_files import IndexFile, load_index
from ottla.logtools.listing import SegmentFiles
from ottla.logtools.walk import Damage, walk
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem

_MAX_RUNS = 400  # beyond that many, a file is compacted, and a wrong batch in it tips no scale
_ENTRIES = 64  # of an index; as many as it takes to be sure


@dataclass(slots=True)
class Run:
    """Batches in a row whose offsets follow on each other."""

    first: int
    end: int
    batches: int = 1


@dataclass(eq=False)
class Contents:
    """The good batches of one log file."""

    segment: SegmentFiles
    runs: list[Run]  # the chain
    _rows: Callable[[], Iterator[array[int]]]  # reads the file again

    @cached_property
    def ends(self) -> dict[int, int]:
        """By the position of each batch, its last offset. Only asked of files that are in question."""
        return {row[kernel.POSITION]: row[kernel.LAST_OFFSET] for row in self._rows()}

    @cached_property
    def marks(self) -> set[tuple[int, int, int]]:
        """First and last offset and CRC of each batch."""
        return {(row[kernel.BASE_OFFSET], row[kernel.LAST_OFFSET], row[kernel.CRC]) for row in self._rows()}

    @cached_property
    def first_epoch(self) -> tuple[int, int]:
        """Offset and leader epoch of the first batch."""
        row = next(self._rows())
        return row[kernel.BASE_OFFSET], row[kernel.LEADER_EPOCH]

    @property
    def base_offset(self) -> int:
        return self.segment.base_offset

    @property
    def head(self) -> int:
        """What the first batch says; it may be the one that is wrong."""
        return self.runs[0].first

    @property
    def first(self) -> int:
        return self.solid[0].first

    @property
    def end(self) -> int:
        return self.solid[-1].end

    @cached_property
    def batches(self) -> int:
        return sum(run.batches for run in self.runs)

    @cached_property
    def offsets(self) -> int:
        return sum(run.end - run.first for run in self.runs)

    @cached_property
    def solid(self) -> list[Run]:
        """Without single batches that stand apart from many others: such a one may have a wrong offset."""
        return [run for run in self.runs if run.batches > 1] or self.runs

    def shared_with(self, other: Contents) -> int:
        """How many offsets of this file the other one holds too."""
        theirs = other.solid
        shared = 0
        if self.end <= other.first or other.end <= self.first:
            return shared
        for run in self.solid:
            at = max(0, bisect_right(theirs, run.first, key=_first) - 1)
            while at < len(theirs) and theirs[at].first < run.end:
                shared += max(0, min(run.end, theirs[at].end) - max(run.first, theirs[at].first))
                at += 1
        return shared

    def holds(self, offset: int) -> bool:
        return _is_in(self.solid, offset)

    def bears_out(self, indexes: Indexes | None, base_offset: int) -> bool | None:
        """Whether indexes tell of these batches if the segment begins at `base_offset`; None: they are silent."""
        if indexes is None:
            return None
        entries = _entries(indexes.offsets)
        agree = [self.ends.get(position) == base_offset + relative for relative, position in entries]
        if not entries:
            agree = [self.has(base_offset + relative) for _, relative in _entries(indexes.times)]
        return sum(agree) * 2 > len(agree) if agree else None

    def base_by(self, indexes: Indexes | None) -> int | None:
        """The base offset that an offset index gives these batches."""
        for relative, position in _entries(indexes.offsets) if indexes is not None else []:
            base = self.ends.get(position, -1) - relative
            if base >= 0 and self.bears_out(indexes, base):
                return base
        return None

    def has(self, offset: int) -> bool:
        """As `holds`, also in single batches that stand apart."""
        return _is_in(self.runs, offset)


class Indexes(NamedTuple):
    """The two indexes of one name."""

    offsets: IndexFile | None
    times: IndexFile | None


def _entries(index: IndexFile | None) -> list[tuple[int, int]]:
    return [index[slot] for slot in range(min(index.entries, _ENTRIES))] if index is not None else []


def read_contents(fs: FileSystem, segment: SegmentFiles) -> Contents:
    """Read a log file once, past what is damaged."""
    rows = partial(_good_batches, fs, segment.path(layout.LOG))
    runs: list[Run] = []
    for row in rows():
        first, last = row[kernel.BASE_OFFSET], row[kernel.LAST_OFFSET]
        if runs and runs[-1].end == first:
            runs[-1].end = last + 1
            runs[-1].batches += 1
        else:
            runs.append(Run(first, last + 1))
    return Contents(segment, _heaviest_chain(runs), rows)


def _good_batches(fs: FileSystem, path: str) -> Iterator[array[int]]:
    file = fs.open(path)
    try:
        for found in walk(file, file.size()):
            if not isinstance(found, Damage):
                for at in range(0, found.count * kernel.ROW, kernel.ROW):
                    yield found.rows[at : at + kernel.ROW]
    finally:
        file.close()


def _first(run: Run) -> int:
    return run.first


def _is_in(runs: list[Run], offset: int) -> bool:
    at = bisect_right(runs, offset, key=_first) - 1
    return at >= 0 and offset < runs[at].end


def _heaviest_chain(runs: list[Run]) -> list[Run]:
    """Those runs, in the file's order, whose offsets ascend and that have the most batches."""
    if all(earlier.end <= later.first for earlier, later in pairwise(runs)):
        return runs
    if len(runs) > _MAX_RUNS:
        return [run for run in runs if run.first >= runs[0].first]
    weight = [run.batches for run in runs]
    before = [-1] * len(runs)
    for at, run in enumerate(runs):
        for earlier in range(at):
            if runs[earlier].end <= run.first and weight[earlier] + run.batches > weight[at]:
                weight[at], before[at] = weight[earlier] + run.batches, earlier
    chain: list[Run] = []
    # Most bits of an offset are zeros: a wrong one is rather too large than too small.
    at = max(range(len(runs)), key=lambda at: (weight[at], -runs[at].end))
    while at >= 0:
        chain.append(runs[at])
        at = before[at]
    return chain[::-1]


def indexes_of(fs: FileSystem, directory: str, base_offset: int) -> Indexes | None:
    """None, if there is no index of that name."""
    found = [
        load_index(fs, f"{directory}/{layout.segment_file(base_offset, suffix)}", suffix, base_offset)
        for suffix in (layout.INDEX, layout.TIME_INDEX)
    ]
    return Indexes(found[0], found[1]) if any(found) else None
