"""What a picture of a log holds: its segments, where it is not whole, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.storage.producers.snapshot_file import SnapshotEntry

GAP, DAMAGE = "gap", "damage"


@dataclass(frozen=True, slots=True)
class Break:
    """Where a log is not whole: offsets that are not there, or bytes that are no batches.

    Offsets and times are those of the first and the last that are missing or doubtful, as far as they are known.
    """

    kind: str
    file: str
    meaning: str
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None


@dataclass(slots=True)
class SegmentPicture:
    """One segment. Offsets and times are None where the segment is empty or cannot be read."""

    file: str
    base_offset: int
    size: int
    is_active: bool
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    index_entries: int | None = None
    time_index_entries: int | None = None
    aborted_transactions: int = 0
    bytes_per_index_entry: int | None = None
    has_snapshot: bool = False


@dataclass(slots=True)
class LogPicture:
    """One partition."""

    path: str
    name: str
    topic_id: str | None
    segments: list[SegmentPicture] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)  # files and why they could not be read
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: list[SnapshotEntry] = field(default_factory=list)
    snapshot_offset: int | None = None
    other_files: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def offsets(self) -> tuple[int, int] | None:
        """The first and the last one."""
        known = [s for s in self.segments if s.first_offset is not None and s.last_offset is not None]
        return (known[0].first_offset or 0, known[-1].last_offset or 0) if known else None

    @property
    def held(self) -> int:
        """How many offsets its segments span together."""
        return sum(
            segment.last_offset - segment.first_offset + 1
            for segment in self.segments
            if segment.first_offset is not None and segment.last_offset is not None
        )

    @property
    def times(self) -> tuple[int, int] | None:
        """The earliest and the latest one."""
        firsts = [s.first_timestamp for s in self.segments if s.first_timestamp is not None]
        lasts = [s.max_timestamp for s in self.segments if s.max_timestamp is not None]
        return (min(firsts), max(firsts + lasts)) if firsts else None


def why(path: str, error: OSError) -> str:
    return f"{error.filename or path}: {error.strerror or error}"
