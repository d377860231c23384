"""Segments that lie under a wrong name, or do not belong to a log at all: what is said of them, and when to look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ottla.logtools.findings import DEFECT, Finding, Findings
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.storage import layout

MOVING = ".moving"  # on its way from a wrong name to the right one, while that is still taken
RENAME = "rename"
SET_ASIDE = "set-aside"
UNDECIDED = "undecided"

CODES = {RENAME: "misnamed-segment", SET_ASIDE: "stray-segment", UNDECIDED: "overlapping-segments"}
_SUSPICIOUS = ("base-offset", "gap", "missing-records", "missing-index", "offset-index-entry")


@dataclass(frozen=True, slots=True)
class Stranger:
    """A segment that is not what its name says, and what to do with it."""

    segment: SegmentFiles
    verdict: str
    meaning: str
    base_offset: int = -1  # where one that is renamed belongs
    with_index: bool = False  # the files beside it tell of it, and go with it

    @property
    def finding(self) -> Finding:
        path = self.segment.path(layout.LOG)
        return Finding(DEFECT, CODES[self.verdict], path, self.meaning, None, self.segment.base_offset)


def look_strange(findings: Findings) -> bool:
    """Whether what was found can come from a file with a wrong name."""
    return any(finding.level == DEFECT and finding.code in _SUSPICIOUS for finding in findings.all())


def ends_too_late(last: SegmentFacts | None, known_end: int) -> bool:
    """Whether the last segment is empty and its name lies past what the checkpoints know: no broker made it."""
    if last is None or last.is_unreadable:
        return False
    return 0 < known_end < last.segment.base_offset == last.end_offset


def arrange(partition: Partition, strangers: Iterable[Stranger]) -> Partition:
    """The partition as it will be once every file has its place: read from the files as they are called now."""
    by_base = {stranger.segment.base_offset: stranger for stranger in strangers}
    segments = []
    for segment in partition.segments:
        stranger = by_base.get(segment.base_offset)
        if stranger is None or stranger.verdict == UNDECIDED:
            segments.append(segment)
        elif stranger.verdict == RENAME:
            name = segment.file_name(layout.LOG)
            segments.append(replace(segment, base_offset=stranger.base_offset, name=name))
    segments.sort(key=lambda segment: segment.base_offset)
    return replace(partition, segments=segments, bases=[segment.base_offset for segment in segments])
