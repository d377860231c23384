"""What the check of one log is told of its surroundings, and what it has to say."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.logtools.findings import Findings
from ottla.logtools.listing import Partition
from ottla.logtools.verify.epochs import WrongEpoch
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.logtools.verify.strangers import Stranger, ends_too_late, look_strange
from ottla.storage.recovery.witnesses import Hole, Witness


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the data directory says about a partition."""

    is_compacted: bool = False
    log_start: int = 0
    is_trimmed: bool = False  # the log start is known, or may be higher than known
    is_clean: bool = False  # left by a clean stop
    witness: Witness = field(default_factory=Witness)

    @property
    def known_end(self) -> int:
        """How far the checkpoints say that the log goes; 0, if they say nothing."""
        return max(self.witness.recovery_point or 0, self.witness.high_watermark or 0)


@dataclass(slots=True)
class LogReport:
    """What the check of one log found, and the range of offsets in it."""

    findings: Findings = field(default_factory=Findings)
    base_offset: int = 0
    end_offset: int = 0
    is_damaged: bool = False  # batches could not be read
    topic_id: str | None = None
    # The listing that the check went by.
    partition: Partition = field(default_factory=lambda: Partition("", "", None))
    checks: list[SegmentFacts] = field(default_factory=list)
    wrong_epochs: list[WrongEpoch] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)  # offsets that are missing, and not on record
    # The rest was checked as if they were where they belong.
    strangers: list[Stranger] = field(default_factory=list)

    def may_have_strangers(self, around: Surroundings) -> bool:
        """Whether it is worth to read the log again. Not while a file cannot be read: it may hold what decides."""
        last = self.checks[-1] if self.checks else None
        is_readable = not any(finding.code == "unreadable" for finding in self.findings.all())
        return is_readable and (look_strange(self.findings) or ends_too_late(last, around.known_end))
