"""Works out from the log alone what every file beside it should hold: indexes, snapshots, leader epochs.

One pass over the good batches; nothing is written here. What comes out is small: an index has 8 or 12 bytes for
every 4 KiB of log.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.logtools.findings import Findings
from ottla.logtools.listing import Partition, SegmentFiles
from ottla.logtools.verify.producer_trace import ProducerTrace
from ottla.logtools.verify.producers import ProducerChecks
from ottla.logtools.walk import Damage, walk
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import File, FileSystem
from ottla.storage.indexes import time_index, txn_index
from ottla.storage.producers import snapshot_file as producer_snapshot
from ottla.storage.scan import Window

INDEX_INTERVAL_BYTES = 4096
_MAX_OFFSET = 2**63 - 1
Progress = Callable[[int], None]


@dataclass(slots=True)
class Derived:
    """By path, what a file should hold."""

    files: dict[str, bytes] = field(default_factory=dict)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end_offset: int = 0
    damages: list[tuple[SegmentFiles, Damage]] = field(default_factory=list)


@dataclass(slots=True)
class DerivedSegment:
    """What one segment says. Can be sent elsewhere."""

    segment: SegmentFiles
    end_offset: int
    files: dict[str, bytes] = field(default_factory=dict)  # its offset and time index
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: ProducerTrace = field(default_factory=ProducerTrace)
    damages: list[Damage] = field(default_factory=list)


def derive(
    fs: FileSystem,
    partition: Partition,
    *,
    interval: int = INDEX_INTERVAL_BYTES,
    on_progress: Progress = lambda _: None,
) -> Derived:
    """Read the whole log and say what lies beside it."""
    return join(
        fs,
        partition,
        (
            derive_segment(fs, segment, partition.next_base(segment), interval, on_progress)
            for segment in partition.segments
        ),
    )


def join(fs: FileSystem, partition: Partition, parts: Iterable[DerivedSegment]) -> Derived:
    """Put together what was derived from each segment of a log, in order."""
    derived = Derived()
    producers = ProducerChecks(Findings())
    producers.begin(fs, partition)
    for number, part in enumerate(parts):
        segment = part.segment
        if number:
            derived.files[_snapshot_path(partition, segment.base_offset)] = _snapshot(producers)
        producers.replay(part.producers)
        derived.files |= part.files
        if producers.aborted or layout.TXN_INDEX in segment.sizes:
            packed = b"".join(txn_index.ENTRY.pack(0, *txn) for txn in producers.aborted)
            derived.files[segment.path(layout.TXN_INDEX)] = packed
        derived.damages += [(segment, damage) for damage in part.damages]
        latest = derived.epochs[-1][0] if derived.epochs else -1
        derived.epochs += [entry for entry in part.epochs if entry[0] > latest]
        derived.end_offset = max(derived.end_offset, part.end_offset)
    if derived.end_offset in partition.snapshots:
        derived.files[_snapshot_path(partition, derived.end_offset)] = _snapshot(producers)
    return derived


def derive_segment(
    fs: FileSystem, segment: SegmentFiles, next_base: int | None, interval: int, on_progress: Progress
) -> DerivedSegment:
    """Read one segment."""
    part = DerivedSegment(segment, segment.base_offset)
    indexes = _Indexes(segment.base_offset, interval)
    file: File = fs.open(segment.path(layout.LOG))
    try:
        found: Window | Damage
        max_offset = next_base if next_base is not None else _MAX_OFFSET
        for found in walk(file, file.size(), min_offset=segment.base_offset, max_offset=max_offset):
            if isinstance(found, Damage):
                part.damages.append(found)
                on_progress(found.end - found.position)
                continue
            last = (found.count - 1) * kernel.ROW
            indexes.add(found)
            part.producers.window(file, found, Findings())
            _note_epochs(part.epochs, found)
            part.end_offset = max(part.end_offset, found.rows[last + kernel.LAST_OFFSET] + 1)
            on_progress(
                found.rows[last + kernel.POSITION]
                + found.rows[last + kernel.SIZE]
                - found.rows[kernel.POSITION]
            )
    finally:
        file.close()
    indexes.finish()
    part.files = {
        segment.path(layout.INDEX): bytes(indexes.offsets),
        segment.path(layout.TIME_INDEX): bytes(indexes.times),
    }
    return part


class _Indexes:
    """The entries of one segment's offset and time index."""

    def __init__(self, base_offset: int, interval: int) -> None:
        self._base_offset = base_offset
        self._interval = interval
        self._state = array("q", [0, -1, base_offset, -1, -1, -1, 0, 0])
        self.offsets = bytearray()
        self.times = bytearray()

    def add(self, window: Window) -> None:
        kernel.index_rows(
            window.rows,
            window.count,
            self._base_offset,
            self._interval,
            self._state,
            self.offsets,
            self.times,
        )

    def finish(self) -> None:
        """The last time entry is the largest timestamp, as when a segment is closed."""
        _, timestamp, offset, _, last_timestamp, last_offset, *_ = self._state
        if timestamp > last_timestamp and timestamp >= 0 and offset > last_offset:
            self.times += time_index.ENTRY.pack(timestamp, offset - self._base_offset)


def _note_epochs(epochs: list[tuple[int, int]], window: Window) -> None:
    latest = epochs[-1][0] if epochs else -1
    keep = array("q", bytes(8 * window.count))
    for number in keep[: kernel.epoch_rows(window.rows, window.count, latest, keep)]:
        epoch = window.rows[number * kernel.ROW + kernel.LEADER_EPOCH]
        if epoch > latest:
            latest = epoch
            epochs.append((epoch, window.rows[number * kernel.ROW + kernel.BASE_OFFSET]))


def _snapshot(producers: ProducerChecks) -> bytes:
    return producer_snapshot.encode(producers.state.snapshot())


def _snapshot_path(partition: Partition, offset: int) -> str:
    return f"{partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}"
