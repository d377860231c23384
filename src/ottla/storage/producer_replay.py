"""Brings producer state up to date from batches in the log: on a follower, after truncation, while loading."""

from __future__ import annotations

from array import array

from ottla.records import batch, control, kernel
from ottla.records.control import Marker
from ottla.storage import snapshots
from ottla.storage.fs import FileSystem
from ottla.storage.producer_state import ProducerState
from ottla.storage.scan import Scan
from ottla.storage.segment import Segment
from ottla.storage.segment_set import SegmentSet
from ottla.storage.txn_index import AbortedTxn


def apply_marker(
    producers: ProducerState,
    segment: Segment | None,
    producer_id: int,
    epoch: int,
    marker: Marker,
    offset: int,
    timestamp: int,
) -> None:
    """A marker ends a transaction; an aborted one is written into the segment's index, if one is given."""
    completed = producers.append_marker(
        producer_id, epoch, marker.coordinator_epoch, offset, timestamp, is_abort=marker.is_abort
    )
    if completed is None:
        return
    if completed.is_aborted and segment is not None:
        stable = producers.last_stable_offset(completed)
        segment.txn_index.append(AbortedTxn(producer_id, completed.first_offset, offset, stable))
    producers.complete(completed)


def apply_rows(
    producers: ProducerState,
    segment: Segment,
    rows: array[int],
    count: int,
    *,
    from_offset: int = 0,
    index_aborted: bool = True,
) -> None:
    """Replay scanned batches that lie in `segment`, those that end below `from_offset` left out."""
    keep = array("q", bytes(8 * count))
    for number in keep[: kernel.producer_rows(rows, count, keep)]:
        row = rows[number * kernel.ROW : (number + 1) * kernel.ROW]
        if row[kernel.LAST_OFFSET] < from_offset:
            continue
        attributes, producer_id, epoch = (
            row[kernel.ATTRIBUTES],
            row[kernel.PRODUCER_ID],
            row[kernel.PRODUCER_EPOCH],
        )
        if attributes & batch.CONTROL:
            marker = control.parse_marker(segment.file.pread(row[kernel.SIZE], row[kernel.POSITION]))
            if marker is not None:
                where = segment if index_aborted else None
                last_offset, timestamp = row[kernel.LAST_OFFSET], row[kernel.MAX_TIMESTAMP]
                apply_marker(producers, where, producer_id, epoch, marker, last_offset, timestamp)
            continue
        producers.append_batch(
            producer_id,
            epoch,
            row[kernel.BASE_SEQUENCE],
            row[kernel.LAST_DELTA] + 1,
            row[kernel.BASE_OFFSET],
            row[kernel.LAST_OFFSET],
            row[kernel.MAX_TIMESTAMP],
            bool(attributes & batch.TRANSACTIONAL),
        )


def rebuild(
    fs: FileSystem,
    directory: str,
    segments: SegmentSet,
    producers: ProducerState,
    start_offset: int,
    end_offset: int,
    now_ms: int,
) -> None:
    """State as of `end_offset`: the newest snapshot below it, then the batches since. Indexes are not touched."""
    snapshots.load_latest(fs, directory, producers, start_offset, end_offset, now_ms)
    if producers.end_offset < end_offset:
        for segment in segments.between(producers.end_offset, end_offset):
            replay_segment(producers, segment)
    producers.remove_expired(now_ms)
    producers.end_offset = end_offset


def replay_segment(producers: ProducerState, segment: Segment) -> None:
    """All batches of a segment from the state's end offset on."""
    from_offset = producers.end_offset
    start = segment.offset_index.lookup(from_offset)[1] if from_offset > segment.base_offset else 0
    for window in Scan(segment.file, segment.size, start=start, flags=0):
        apply_rows(
            producers, segment, window.rows, window.count, from_offset=from_offset, index_aborted=False
        )
