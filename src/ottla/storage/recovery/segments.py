"""What loading does to one segment: finds its end, or reads it in full, cuts it and builds its indexes anew."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from ottla.errors import CorruptIndexError, CorruptionError
from ottla.records import kernel
from ottla.runtime import Runtime
from ottla.storage import layout
from ottla.storage.fs import FileSystem, size_of
from ottla.storage.log import producer_replay, rebuilding
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.segment import Segment
from ottla.storage.producers.state import ProducerState
from ottla.storage.recovery.parallel_scan import scan_whole
from ottla.storage.recovery.split import check_range
from ottla.storage.scan import Scan

_INDEXES = (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX)


def recover_segment(
    runtime: Runtime,
    segment: Segment,
    producers: ProducerState,
    epochs: LeaderEpochs,
    flags: int,
    on_cut: Callable[[int], None],
) -> bool:
    """Rebuild a segment's indexes from its log, producer state and epochs along the way; True if its tail was cut.

    Before that `on_cut` is called, with the offset that should come there.
    """
    size = segment.file.size()
    expected, noted = segment.base_offset, False
    for window in scan_whole(runtime, segment.file, size, flags):
        count = kernel.rows_in_order(window.rows, window.count, expected)
        if count:
            last = (count - 1) * kernel.ROW
            expected = window.rows[last + kernel.LAST_OFFSET] + 1
            check_range(segment, expected)
            good = window.rows[last + kernel.POSITION] + window.rows[last + kernel.SIZE]
            rebuilding.add(segment, window.rows, count, good)
            producer_replay.apply_rows(producers, segment, window.rows, count)
            noted = _note_epochs(window.rows, count, epochs) or noted
        if count < window.count:
            break
    if noted:
        epochs.write()
    cut = segment.size < size
    if cut:
        on_cut(expected)
    rebuilding.end(segment)
    return cut


def _note_epochs(rows: array[int], count: int, epochs: LeaderEpochs) -> bool:
    """Only an epoch above the latest is news: the checkpoint may know more than one segment does."""
    changed = False
    keep = array("q", bytes(8 * count))
    for number in keep[: kernel.epoch_rows(rows, count, epochs.latest_epoch, keep)]:
        epoch = rows[number * kernel.ROW + kernel.LEADER_EPOCH]
        if epoch > epochs.latest_epoch:
            changed = epochs.note(epoch, rows[number * kernel.ROW + kernel.BASE_OFFSET]) or changed
    return changed


def quick_end(fs: FileSystem, segment: Segment) -> int | None:
    """Where a segment ends, if its indexes are there and sane, and the log ends with a whole batch; else None."""
    if segment.size == 0:  # entries of batches that are gone would lead past the end
        has_entries = any(size_of(fs, path) for path in map(segment.path, _INDEXES))
        return None if has_entries else segment.base_offset
    try:
        segment.offset_index.sanity_check()
        segment.time_index.sanity_check()
        segment.txn_index.sanity_check()
        return segment_end_offset(segment)
    except (CorruptionError, FileNotFoundError):
        return None


def segment_end_offset(segment: Segment) -> int:
    """One past the last offset in the segment: read from its last index entry on."""
    start = segment.offset_index.lookup(segment.offset_index.last_offset)[1]
    scan = Scan(segment.file, segment.size, start=start, flags=0)
    end = segment.base_offset
    for window in scan:
        end = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
    if scan.position != segment.size or (end <= segment.offset_index.last_offset and start):
        raise CorruptIndexError(
            f"{segment.path(layout.LOG)}: read from its last index entry at {start}, batches end at {scan.position} "
            f"of {segment.size} bytes with offset {end - 1}"
        )
    return end
