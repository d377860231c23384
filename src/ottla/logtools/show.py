"""Draws up the picture of a log: what each segment holds, without reading it through.

Headers at a segment's beginning and behind its last index entry, the last time-index entry and the newest snapshot
say nearly everything; the log itself is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.errors import CorruptionError
from ottla.logtools import side_files
from ottla.logtools.index_files import load_index
from ottla.logtools.side_files import BadSideFileError
from ottla.logtools.source import Partition, SegmentFiles, open_if_there, read_if_there
from ottla.records import kernel
from ottla.storage import layout, producer_snapshot
from ottla.storage.find_batch import is_good_batch
from ottla.storage.fs import File, FileSystem
from ottla.storage.producer_snapshot import SnapshotEntry
from ottla.storage.scan import Scan, Window

_TXN_ENTRY_BYTES = 34
_HEAD_BYTES = 1 << 20


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
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: list[SnapshotEntry] = field(default_factory=list)
    snapshot_offset: int | None = None
    other_files: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)


def picture(fs: FileSystem, partition: Partition) -> LogPicture:
    found = LogPicture(partition.path, partition.name, None)
    found.other_files = [*partition.leftovers, *partition.orphans]
    for segment in partition.segments:
        shown = _segment(fs, segment, partition.next_base(segment))
        if shown is not None:
            shown.has_snapshot = segment.base_offset in partition.snapshots
            found.segments.append(shown)
    if partition.whole:
        found.epochs = _epochs(fs, partition)
        found.topic_id = _topic_id(fs, partition)
        _load_producers(fs, partition, found)
    return found


def _segment(fs: FileSystem, segment: SegmentFiles, next_base: int | None) -> SegmentPicture | None:
    file = open_if_there(fs, segment.path(layout.LOG))
    if file is None:
        return None
    try:
        size = file.size()
        shown = SegmentPicture(segment.file_name(layout.LOG), segment.base_offset, size, next_base is None)
        tail = _indexes(fs, segment, shown)
        _ends(file, size, tail, shown)
    finally:
        file.close()
    shown.aborted_transactions = segment.sizes.get(layout.TXN_INDEX, 0) // _TXN_ENTRY_BYTES
    return shown


def _indexes(fs: FileSystem, segment: SegmentFiles, shown: SegmentPicture) -> int:
    """Count entries; returns the position from which the end of the log can be reached."""
    tail = 0
    offsets = (
        None
        if segment.name
        else load_index(fs, segment.path(layout.INDEX), layout.INDEX, segment.base_offset)
    )
    if offsets is not None:
        shown.index_entries = offsets.entries
        if offsets.entries:
            tail = offsets[offsets.entries - 1][1]
            shown.bytes_per_index_entry = shown.size // offsets.entries
    times = (
        None
        if segment.name
        else load_index(fs, segment.path(layout.TIME_INDEX), layout.TIME_INDEX, segment.base_offset)
    )
    if times is not None:
        shown.time_index_entries = times.entries
        if times.entries:
            shown.max_timestamp = times[times.entries - 1][0]
    return tail


def _ends(file: File, size: int, tail: int, shown: SegmentPicture) -> None:
    head = next(iter(Scan(file, min(size, _HEAD_BYTES), flags=0)), None) or next(
        iter(Scan(file, size, flags=0)), None
    )
    if head is None:
        return
    shown.first_offset = head.rows[kernel.BASE_OFFSET]
    if head.rows[kernel.BASE_TIMESTAMP] >= 0:
        shown.first_timestamp = head.rows[kernel.BASE_TIMESTAMP]
    start = tail if tail < size and is_good_batch(file, tail, size, shown.base_offset, 2**63 - 1) else 0
    for window in Scan(file, size, start=start, flags=0):
        shown.last_offset = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET]
        largest = _largest_timestamp(window)
        if largest >= 0 and largest > (shown.max_timestamp or -1):
            shown.max_timestamp = largest


def _largest_timestamp(window: Window) -> int:
    return max(window.rows[kernel.MAX_TIMESTAMP : window.count * kernel.ROW : kernel.ROW])


def _epochs(fs: FileSystem, partition: Partition) -> list[tuple[int, int]]:
    data = read_if_there(fs, f"{partition.path}/{layout.LEADER_EPOCHS}")
    try:
        return side_files.parse_epochs(data)[0] if data is not None else []
    except BadSideFileError:
        return []


def _topic_id(fs: FileSystem, partition: Partition) -> str | None:
    data = read_if_there(fs, f"{partition.path}/{layout.PARTITION_METADATA}")
    try:
        return str(side_files.parse_topic_id(data)) if data is not None else None
    except BadSideFileError:
        return None


def _load_producers(fs: FileSystem, partition: Partition, found: LogPicture) -> None:
    """From the newest snapshot that can be read."""
    for offset in reversed(partition.snapshots):
        path = f"{partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}"
        data = read_if_there(fs, path)
        try:
            if data is not None:
                found.producers = producer_snapshot.decode(data, path)
                found.snapshot_offset = offset
                return
        except CorruptionError:
            continue
