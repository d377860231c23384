"""Holds the entries of a segment's offset and time index against its batches.

An offset entry points at the beginning of a batch and names its last offset. Kafka before 4.0 wrote one entry for
several batches that were appended together: it points at the first and names the last offset of the last. A time
entry names a batch (before 4.0 sometimes a record in it) with a larger timestamp than all before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.logtools.findings import Finding, Findings
from ottla.logtools.index_files import IndexFile

_FOUND_AT_ONCE = 256
_BAD_OFFSET_ENTRY = "offset-index-entry"
_BAD_TIME_ENTRY = "time-index-entry"


@dataclass(slots=True)
class _Joint:
    """An offset entry that names a later batch's offset: one for several batches, or a wrong one."""

    slot: int
    offset: int
    position: int
    of_old_format: bool


@dataclass(slots=True)
class Gap:
    """Where a damaged batch was: entries may point into it."""

    position: int
    end: int
    from_offset: int
    to_offset: int


@dataclass(slots=True)
class EntryChecks:
    """The checks of one segment's two indexes, window by window."""

    findings: Findings
    base_offset: int
    offset_index: IndexFile | None
    time_index: IndexFile | None
    gaps: list[Gap] = field(default_factory=list)
    joint_entries: int = 0
    doubtful: list[Finding] = field(default_factory=list)  # defects unless this log has joint entries
