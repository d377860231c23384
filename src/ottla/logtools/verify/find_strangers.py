"""Tells which segments of a log lie under a wrong name, or do not belong there at all.

A careless hand copies, renames or swaps files. What the batches say decides: their offsets against the file's name,
against what the other files hold, against the indexes and the leader epochs. A file whose batches have a place of their
own is renamed; one whose offsets another file holds with better right is set aside whole; and where neither is better,
both stay. docs/decisions/0013 says why.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.errors import CorruptCheckpointError
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.verify.segment_contents import Contents, Indexes, indexes_of, read_contents
from ottla.logtools.verify.strangers import RENAME, SET_ASIDE, UNDECIDED, Stranger
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem


def find_strangers(fs: FileSystem, partition: Partition, known_end: int = 0) -> list[Stranger]:
    """What does not belong where it is, in the order of the names. `known_end`: how far the checkpoints say that the
    log goes; 0, if they say nothing."""
    found = _Judgement(fs, partition).run(known_end)
    return sorted(found, key=lambda stranger: stranger.segment.base_offset)


class _Judgement:
    """The files of one log while it is decided which are where they belong."""

    def __init__(self, fs: FileSystem, partition: Partition) -> None:
        self._fs = fs
        self._partition = partition
        self._files: list[Contents] = []
        self._empty: dict[int, SegmentFiles] = {}  # without a good batch
        for segment in partition.segments:
            contents = read_contents(fs, segment)
            if contents.runs:
                self._files.append(contents)
            else:
                self._empty[segment.base_offset] = segment
        orphans = (layout.parse_segment_file(name) for name in partition.orphans)
        self._orphans = {file.base_offset for file in orphans if file is not None}
        self._placed = [one for one in self._files if one.base_offset in (one.first, one.head)]
        self._found: list[Stranger] = []
        try:
            self._epochs = checkpoint.read_epochs(fs, f"{partition.path}/{layout.LEADER_EPOCHS}")
        except CorruptCheckpointError:
            self._epochs = []

    def run(self, known_end: int) -> list[Stranger]:
        doubtful = [one for one in self._files if one not in self._placed]
        misplaced = [one for one in doubtful if self._is_misplaced(one)]
        # One that has the name of another's batches is not right either.
        claimed = {one.head for one in misplaced}
        misplaced += [one for one in doubtful if one not in misplaced and one.base_offset in claimed]
        # Nor are two whose names have another order than their batches.
        left = [one for one in doubtful if one not in misplaced and one.batches > 1]
        misplaced += [one for one in left if any(_are_turned(one, other) for other in left)]
        # A single batch under a name that is not its own may just as well have a wrong offset: `verify` looks at that.
        self._placed += [one for one in doubtful if one not in misplaced and one.batches > 1]
        for one in sorted(misplaced, key=lambda one: (-one.batches, one.base_offset)):
            self._find_place(one)
        while self._settle_an_overlap():
            pass
        self._judge_empty(known_end)
        return self._found

    def _judge_empty(self, known_end: int) -> None:
        """A file without a good batch stays, unless its name is an offset of another, or one that never was."""
        end = max((other.end for other in self._placed), default=0)
        for base_offset, segment in self._empty.items():
            holder = next((other for other in self._placed if other.holds(base_offset)), None)
            if holder is not None and holder.base_offset != base_offset:
                meaning = f"it holds no good batch, and the offset of its name is in {_name(holder)}"
                self._set_aside(segment, meaning)
            elif 0 < max(known_end, end) < base_offset and known_end:
                meaning = f"it holds no good batch, and the log goes only up to {max(known_end, end)}"
                self._set_aside(segment, meaning)

    # -- one file by itself

    def _is_misplaced(self, one: Contents) -> bool:
        if one.batches == 1:
            return self._single_is_misplaced(one)
        if one.first < one.base_offset:
            return True
        later = [other.base_offset for other in self._placed if other.base_offset > one.base_offset]
        if later and one.first >= min(later):
            return True
        if any(other.holds(one.base_offset) for other in self._placed if other.first < one.base_offset):
            return True
        return self._index_says(one)

    def _indexes(self, base_offset: int) -> Indexes | None:
        return indexes_of(self._fs, self._partition.path, base_offset)

    def _index_says(self, one: Contents) -> bool:
        """Whether the indexes know these batches under the name that their offsets give, and not under this one."""
        own = self._indexes(one.base_offset)
        if one.bears_out(own, one.base_offset):
            return False
        other = self._indexes(one.first)
        return (
            one.bears_out(own, one.first) is True
            or one.bears_out(other, one.first) is True
            or (own is None and other is not None)
        )

    def _single_is_misplaced(self, one: Contents) -> bool:
        """Only where other files bear it out: a copy of one of them, or a place that waits for it."""
        twins = [other for other in self._files if other is not one and one.shared_with(other)]
        if any(
            one.marks <= other.marks for other in twins if other in self._placed or other.marks == one.marks
        ):
            return True
        if any(other.shared_with(one) for other in self._placed):
            return False
        return one.first in self._orphans or (
            self._links(one, one.first) > self._links(one, one.base_offset) and not self._index_denies(one)
        )

    def _index_denies(self, one: Contents) -> bool:
        own = self._indexes(one.base_offset)
        return one.bears_out(own, one.base_offset) is True

    def _links(self, one: Contents, first: int) -> int:
        """How many neighbours the file would have if it began at `first`."""
        end = first + one.end - one.first
        others = [other for other in self._placed if other is not one]
        return any(other.end == first for other in others) + any(other.first == end for other in others)

    # -- a place for it

    def _find_place(self, one: Contents) -> None:
        holders = [other for other in self._placed if one.shared_with(other)]
        if not holders:
            self._rename(one, self._base_for(one))
            return
        holder = max(holders, key=one.shared_with)
        if len(holders) == 1 and one.marks > holder.marks:
            what = f"its batches are also in {_name(one)}, which has more of them"
            self._set_aside(holder.segment, what)
            self._placed.remove(holder)
            self._rename(one, holder.base_offset)
        elif sum(map(one.shared_with, holders)) * 2 >= one.offsets:
            self._set_aside(one.segment, self._why_stray(one, holder))
        else:
            meaning = (
                f"its batches have offsets {one.first} to {one.end - 1}, not those of its name, and some of them are"
                f" also in {_name(holder)}: which file is right cannot be told"
            )
            self._tell(one.segment, UNDECIDED, meaning)

    def _why_stray(self, one: Contents, holder: Contents) -> str:
        what = f"its batches have offsets {one.first} to {one.end - 1}, not those of its name"
        same = "a copy of" if one.marks <= holder.marks else "offsets that are held by"
        return f"{what}: {same} {_name(holder)}"

    def _base_for(self, one: Contents) -> int:
        """The name that the batches give, or below it one that an index knows: a compacted segment keeps its name."""
        floor = max((other.end for other in self._placed if other.first < one.first), default=0)
        own = one.base_by(self._indexes(one.base_offset))
        if own is not None and floor <= own <= one.first:
            return own
        for base in sorted(self._orphans, reverse=True):
            if floor <= base <= one.first and one.bears_out(self._indexes(base), base):
                return base
        return one.head if floor <= one.head <= one.first else one.first

    def _rename(self, one: Contents, base_offset: int) -> None:
        if base_offset == one.base_offset:
            self._placed.append(one)
            return
        blank = self._empty.pop(base_offset, None)
        if blank is not None:
            self._set_aside(blank, f"it holds no good batch; {_name(one)} has what belongs there")
        if any(other.base_offset == base_offset for other in self._placed):
            self._set_aside(one.segment, "its batches are not those of its name, and their place is taken")
            return
        name = layout.segment_file(base_offset, layout.LOG)
        meaning = f"its batches have offsets {one.first} to {one.end - 1}: it belongs at {name}"
        self._found.append(
            Stranger(one.segment, RENAME, meaning, base_offset, self._has_index(one, base_offset))
        )
        moved = replace(one.segment, base_offset=base_offset, name=_name(one))
        self._placed.append(replace(one, segment=moved))

    def _has_index(self, one: Contents, base_offset: int) -> bool:
        own = self._indexes(one.base_offset)
        said = one.bears_out(own, base_offset)
        return own is not None and (said is True or (said is None and base_offset not in self._orphans))

    def _set_aside(self, segment: SegmentFiles, meaning: str) -> None:
        self._tell(segment, SET_ASIDE, meaning)

    def _tell(self, segment: SegmentFiles, verdict: str, meaning: str) -> None:
        name = segment.file_name(layout.LOG)  # it may have been given a place meanwhile
        as_listed = next(one for one in self._partition.segments if one.file_name(layout.LOG) == name)
        self._found = [stranger for stranger in self._found if stranger.segment is not as_listed]
        self._found.append(Stranger(as_listed, verdict, meaning))

    # -- files that claim the same offsets

    def _settle_an_overlap(self) -> bool:
        """Set aside the file with the least right to its offsets; False when no two overlap, or it cannot be told."""
        overlapping = self._overlapping()
        # Of two that are the same, the one with the lower name stays: a compacted segment begins below its batches.
        for one in sorted(overlapping, key=lambda one: (self._right(one), -one.base_offset)):
            rivals = overlapping[one]
            self._placed.remove(one)
            names = ", ".join(_name(other) for other in rivals)
            is_copy = any(one.marks <= other.marks for other in rivals)
            if is_copy or all(self._right(one) < self._right(other) for other in rivals):
                meaning = (
                    f"its offsets {one.first} to {one.end - 1} are held by {names}, which fit the log better"
                )
                self._set_aside(one.segment, meaning)
            else:
                meaning = (
                    f"its offsets {one.first} to {one.end - 1} are also in {names}, and which file belongs to this log"
                    " cannot be told: move the wrong one away"
                )
                self._tell(one.segment, UNDECIDED, meaning)
            return True
        return False

    def _overlapping(self) -> dict[Contents, list[Contents]]:
        """Files that have offsets in common with others, and those."""
        found: dict[Contents, list[Contents]] = {}
        open_ones: list[Contents] = []
        for one in sorted(self._placed, key=lambda one: one.first):
            open_ones = [other for other in open_ones if other.end > one.first]
            for other in open_ones:
                if one.shared_with(other):
                    found.setdefault(one, []).append(other)
                    found.setdefault(other, []).append(one)
            open_ones.append(one)
        return found

    def _right(self, one: Contents) -> tuple[int, int]:
        """How well a file fits: neighbours that it joins, and what its index and the leader epochs say."""
        index = self._indexes(one.base_offset)
        said = one.bears_out(index, one.base_offset)
        by_index = (index is not None) + (said is True) - (said is False)
        return self._links(one, one.first), by_index + self._by_epoch(one)

    def _by_epoch(self, one: Contents) -> int:
        """1, if the first batch has the leader epoch that the checkpoint has for its offset; -1, if another."""
        offset, epoch = one.first_epoch
        known = [number for number, start in self._epochs if start <= offset]
        return 0 if not known else 1 if known[-1] == epoch else -1


def _are_turned(one: Contents, other: Contents) -> bool:
    """Whether their names have another order than their batches."""
    return (one.base_offset - other.base_offset) * (one.first - other.first) < 0


def _name(one: Contents) -> str:
    return one.segment.file_name(layout.LOG)
