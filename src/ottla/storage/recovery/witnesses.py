"""What the files beside the records know of a log: where it must begin, how far it was on disk, where it has holes.

The recovery point is written when a sync has succeeded, and lowered before a log is cut: below it every record was on
disk. After a clean stop it is the log's end; should it be lost then, the high watermark, the snapshot of the stop and
the last leader epoch still say how far the log went. The first leader epoch begins where the log does: it is moved on,
on disk, before retention takes segments out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ottla.storage import layout
from ottla.storage.layout import SegmentFile
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET


class Witness(NamedTuple):
    """What the checkpoints of a log directory say of one log; None where they say nothing."""

    recovery_point: int | None = None
    high_watermark: int | None = None
    start_offset: int | None = None
    written_ms: int | None = None  # when the recovery points were written


class Expected(NamedTuple):
    """What a log must hold."""

    start_offset: int | None  # None: nobody knows
    end_offset: int  # all below it was on disk; 0: nobody knows
    stopped_at: int | None = None  # where a clean stop left its snapshot


class Span(NamedTuple):
    """A segment: the name of its log, and the offsets in it."""

    file: str
    base_offset: int
    end_offset: int


class Hole(NamedTuple):
    """Offsets that must be there and are not."""

    file: str
    first_offset: int
    end_offset: int
    reason: str


def expect(
    witness: Witness, files: Sequence[SegmentFile], epochs: Sequence[tuple[int, int]], *, clean: bool
) -> Expected:
    """From checkpoints, the files in the partition's directory and its leader epochs."""
    taken = [file.base_offset for file in files if file.suffix == layout.SNAPSHOT and not file.marker]
    stopped_at = max(taken, default=None) if clean else None
    if stopped_at is not None and (witness.high_watermark or 0) > stopped_at:
        stopped_at = None  # two checkpoints that agree are right
    end_offset = witness.recovery_point or 0
    if clean and witness.recovery_point is None:
        if witness.high_watermark is not None:
            end_offset = witness.high_watermark
        else:
            end_offset = max([*taken, *(start for _, start in epochs[-1:])], default=0)
    start_offset: int | None = None
    if epochs:
        start_offset = max(epochs[0][1], witness.start_offset or 0)
    elif clean:
        start_offset = witness.start_offset
    deleted = [file.base_offset for file in files if file.marker == layout.DELETED]
    if start_offset is not None and any(base >= start_offset for base in deleted):
        start_offset = None  # Kafka moves its epochs on after it has begun to delete
    return Expected(start_offset, end_offset, stopped_at)


def holes(spans: Sequence[Span], expected: Expected, *, may_have_gaps: bool) -> list[Hole]:
    """What is missing of a log that consists of these segments."""
    if not spans:
        start, end = expected.start_offset or 0, expected.end_offset
        reason = f"the log was on disk up to {end}, and there is no segment"
        return [Hole(layout.segment_file(start, layout.LOG), start, end, reason)] if start < end else []
    found = []
    first, last = spans[0], spans[-1]
    start = first.base_offset if expected.start_offset is None else expected.start_offset
    if start < min(first.base_offset, expected.end_offset):
        file = layout.segment_file(start, layout.LOG)
        end = min(first.base_offset, expected.end_offset)
        reason = f"the log began at {start}, and its first segment begins at {first.base_offset}"
        found.append(Hole(file, start, end, reason))
    for span, following in pairwise(spans):
        # A gap that does not fit into a segment is none: it was the reason to roll.
        fits = following.base_offset - span.base_offset <= MAX_RELATIVE_OFFSET
        end = min(following.base_offset, expected.end_offset)
        if span.end_offset < end and fits and not may_have_gaps:
            reason = f"{span.file} ends at {span.end_offset}, and {following.file} begins at {following.base_offset}"
            found.append(Hole(span.file, span.end_offset, end, reason))
    # A checkpoint that says more than the snapshot of the stop is wrong: the log ends where it was closed.
    if last.end_offset < expected.end_offset and last.end_offset != expected.stopped_at:
        end = expected.end_offset
        reason = f"the log was on disk up to {end}, and ends at {last.end_offset} now"
        found.append(Hole(last.file, max(last.end_offset, start), end, reason))
    return [hole for hole in found if hole.first_offset < hole.end_offset]
