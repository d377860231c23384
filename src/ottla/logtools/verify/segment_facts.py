"""What the check of one segment has to say: plain data, so that segments can be checked elsewhere and judged here."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.logtools.findings import Finding, Findings
from ottla.logtools.listing import SegmentFiles
from ottla.logtools.verify.epochs import EpochTrace
from ottla.logtools.verify.producer_trace import ProducerTrace
from ottla.logtools.walk import Damage


@dataclass(slots=True)
class MissingOffsets:
    """Offsets that no batch of a log has: a compaction's doing, or a wrong base offset."""

    file: str
    position: int | None
    offset: int
    size: int
    places: int = 1  # how many such places there are in that file


@dataclass(slots=True)
class Gap:
    """Where a damaged batch was: index entries may point into it."""

    position: int
    end: int
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class WrongBatch:
    """A batch that can be read but must not stay as it is. What is given can be put right in its header."""

    position: int
    size: int
    meaning: str
    base_offset: int | None = None


@dataclass(slots=True)
class SegmentFacts:
    """What the check of one segment found, and what the checks of its log need to know. Can be sent elsewhere."""

    segment: SegmentFiles
    next_base: int | None  # None: the log's last segment, which a writer may be adding to
    findings: Findings = field(default_factory=Findings)
    end_offset: int = 0
    has_vanished: bool = False
    is_unreadable: bool = False
    missing: MissingOffsets | None = None
    lost_records: bool = False  # batches that a compaction made smaller
    joint_entries: int = 0
    doubtful_entries: list[Finding] = field(default_factory=list)
    is_torn: bool = False
    is_zero_tail: bool = False
    is_broken: bool = False  # batches are lost: what they said of producers is not known
    damages: list[Damage] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)  # the offsets of each damage
    wrong: list[WrongBatch] = field(default_factory=list)
    epochs: EpochTrace = field(default_factory=EpochTrace)
    producers: ProducerTrace = field(default_factory=ProducerTrace)
    txn_index: bytes | None = None  # what it held before the log was read
    txn_index_end: int = 0  # up to where it must be complete
