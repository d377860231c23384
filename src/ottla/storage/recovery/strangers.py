"""Segments under a wrong name: copied, renamed or exchanged by hand. What their batches say decides, not the name.

Served as they are they would hide the records of others. One whose batches fill a hole of the log exactly gets the name
they say; any other is kept aside. Only where names, ends and indexes do not fit together is anything read for this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_set import SegmentSet
from ottla.storage.recovery.missing import Missing
from ottla.storage.recovery.witnesses import Expected
from ottla.storage.scan import Scan

_FIRST_BYTES = 64 << 10


class _Content(NamedTuple):
    """The offsets of a segment's batches."""

    first_offset: int
    end_offset: int


def put_right(
    fs: FileSystem, directory: str, segments: SegmentSet, ends: Mapping[int, int | None], missing: Missing
) -> bool:
    """Rename or set aside what does not belong where it is; True if anything changed, and all is to be read anew.

    `ends` has by base offset where each segment's batches end, None where its files do not fit together.
    """
    strangers = [
        (segment, content)
        for segment in _suspects(segments, ends)
        if _is_strange(segment, segments.next_base(segment), _end_before(segments, ends, segment))
        and (content := _content(segment)) is not None
    ]
    wrong = {segment.base_offset for segment, _ in strangers}
    for segment, content in strangers:
        right = _right_name(content, segments, ends, wrong, missing.expected)
        for suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX):
            if fs.exists(segment.path(suffix)):
                fs.unlink(segment.path(suffix))
        offsets = f"it holds offsets {content.first_offset} to {content.end_offset - 1}"
        if right is None:
            missing.setting_aside(segment, f"{offsets}, which do not belong under this name")
            segment.delete()
        else:
            target = f"{directory}/{layout.segment_file(right, layout.LOG)}"
            missing.notices.append(
                f"{segment.path(layout.LOG)}: {offsets}, which were missing; it is named after them again"
            )
            segment.close()
            fs.rename(segment.path(layout.LOG), target)
        fs.sync_dir(directory)
    return bool(strangers)


def _suspects(segments: SegmentSet, ends: Mapping[int, int | None]) -> list[Segment]:
    """Segments that do not fit to their neighbours, and the neighbours."""
    suspects = []
    before_overlaps = False
    for segment in segments:
        end, next_base = ends.get(segment.base_offset), segments.next_base(segment)
        overlaps = end is not None and next_base is not None and end > next_base
        if segment.size and (end is None or end < segment.base_offset or overlaps or before_overlaps):
            suspects.append(segment)
        before_overlaps = overlaps
    return suspects


def _is_strange(segment: Segment, next_base: int | None, end_before: int | None) -> bool:
    first = next(iter(Scan(segment.file, segment.size, window_bytes=_FIRST_BYTES)), None)
    if first is None:  # it is damaged, and says nothing
        return False
    base, first_offset = segment.base_offset, first.rows[kernel.BASE_OFFSET]
    return (
        first_offset < base
        or (next_base is not None and first_offset >= next_base)
        or (end_before is not None and base < end_before <= first_offset)
    )


def _content(segment: Segment) -> _Content | None:
    first, end = None, 0
    for window in Scan(segment.file, segment.size):
        if first is None:
            first = window.rows[kernel.BASE_OFFSET]
        end = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
    return None if first is None else _Content(first, end)


def _end_before(segments: SegmentSet, ends: Mapping[int, int | None], segment: Segment) -> int | None:
    """Where the segment before this one ends, if that is known."""
    before = [base for base in segments.bases if base < segment.base_offset]
    return ends[before[-1]] if before else None


def _right_name(
    content: _Content,
    segments: SegmentSet,
    ends: Mapping[int, int | None],
    wrong: set[int],
    expected: Expected,
) -> int | None:
    """The base offset at which these batches fill a hole, if there is one and the name is free."""
    first, end = content
    if first in segments:
        return None
    others = [segment for segment in segments if segment.base_offset not in wrong]
    before = [segment for segment in others if segment.base_offset < first]
    after = [segment.base_offset for segment in others if segment.base_offset > first]
    fits_before = _end_of(before[-1], ends) == first if before else first >= (expected.start_offset or 0)
    fits_after = end <= after[0] if after else expected.end_offset == 0 or first < expected.end_offset
    return first if fits_before and fits_after else None


def _end_of(segment: Segment, ends: Mapping[int, int | None]) -> int | None:
    """Where a segment ends, if it is whole."""
    end = ends[segment.base_offset]
    content = _content(segment) if end is None and segment.size else None
    return end if content is None else content.end_offset
