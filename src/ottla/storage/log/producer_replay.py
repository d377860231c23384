"""Holds batches against what is known of their producers, and brings that up to date: at an append, on a follower,
after truncation, while loading."""

from __future__ import annotations

from array import array

from ottla.errors import OutOfOrderSequenceError
from ottla.records import batch, control, kernel
from ottla.records.control import Marker
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_set import SegmentSet
from ottla.storage.log.validation import Validated
from ottla.storage.producers import snapshots
from ottla.storage.producers.state import (
    BATCHES_REMEMBERED,
    BatchSummary,
    Producer,
    ProducerState,
    add_to_sequence,
)
from ottla.storage.scan import Scan

RECALL_BYTES = 4 << 20  # how far back a producer's earlier batches are looked for


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


def check(producers: ProducerState, segments: SegmentSet, checked: Validated) -> BatchSummary | None:
    """Refuse a batch that does not come next for its producer; one that is in the log already is returned."""
    producer_id, epoch, sequence = checked.producer_id, checked.producer_epoch, checked.base_sequence
    if checked.attributes & batch.CONTROL:
        marker = control.parse_marker(checked.data)
        if marker is not None:
            producers.check_marker(producer_id, epoch, marker.coordinator_epoch)
        return None
    count = checked.last_offset - checked.first_offset + 1
    duplicate = producers.find_duplicate(producer_id, epoch, sequence, count)
    if duplicate is None:
        transactional = bool(checked.attributes & batch.TRANSACTIONAL)
        try:
            producers.check_append(producer_id, epoch, sequence, transactional=transactional)
        except OutOfOrderSequenceError:
            if recall(producers, segments, producer_id):
                duplicate = producers.find_duplicate(producer_id, epoch, sequence, count)
            if duplicate is None:
                raise
    return duplicate


def apply_checked(producers: ProducerState, segment: Segment, checked: Validated) -> None:
    """A batch that has passed `check` was appended."""
    _, _, attributes, first_offset, last_offset, timestamp, producer_id, epoch, sequence, _ = checked
    if attributes & batch.CONTROL:
        marker = control.parse_marker(checked.data)
        if marker is not None:
            apply_marker(producers, segment, producer_id, epoch, marker, last_offset, timestamp)
        return
    count, is_transactional = last_offset - first_offset + 1, bool(attributes & batch.TRANSACTIONAL)
    producers.append_batch(
        producer_id, epoch, sequence, count, first_offset, last_offset, timestamp, is_transactional
    )


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
    taken: list[int] | None = None,
) -> None:
    """State as of `end_offset`: the newest snapshot below it, then the batches since. Indexes are not touched."""
    snapshots.load_latest(fs, directory, producers, start_offset, end_offset, now_ms, taken)
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


def recall(producers: ProducerState, segments: SegmentSet, producer_id: int) -> bool:
    """Look up the batches before the one that a snapshot had of a producer; True if there are any.

    A client whose answers were lost when the broker stopped sends up to five batches again. Those that matter were
    written just before the stop, so that a little of the log is enough.
    """
    producer = producers.producers[producer_id]
    if not producer.is_partial:
        return False
    producer.is_partial = False
    missing = BATCHES_REMEMBERED - len(producer.batches)
    before = producer.batches[0].first_offset
    found: list[BatchSummary] = []
    for segment in segments.between(segments.first.base_offset, before)[-2:]:
        found += _batches_of(producer, segment, before)
    producer.batches[:0] = found[-missing:] if missing else []
    return bool(found)


def _batches_of(producer: Producer, segment: Segment, before: int) -> list[BatchSummary]:
    """The batches of one producer's epoch in the last part of a segment below the offset `before`."""
    index = segment.offset_index
    start = index.lookup(before)[1] - RECALL_BYTES
    near = index.offset_at_or_after(start) if start > 0 else None
    start = index.lookup(near)[1] if near is not None else 0
    found: list[BatchSummary] = []
    for window in Scan(segment.file, segment.size, start=start, flags=0):
        keep = array("q", bytes(8 * window.count))
        for number in keep[: kernel.producer_rows(window.rows, window.count, keep)]:
            row = window.rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            first_offset, last_offset = row[kernel.BASE_OFFSET], row[kernel.LAST_OFFSET]
            if last_offset >= before:
                return found
            is_its = row[kernel.PRODUCER_ID] == producer.producer_id
            if (
                is_its
                and row[kernel.PRODUCER_EPOCH] == producer.epoch
                and not row[kernel.ATTRIBUTES] & batch.CONTROL
            ):
                sequence, last_delta = row[kernel.BASE_SEQUENCE], row[kernel.LAST_DELTA]
                last_sequence = add_to_sequence(sequence, last_delta)
                timestamp = row[kernel.MAX_TIMESTAMP]
                found.append(BatchSummary(sequence, last_sequence, first_offset, last_offset, timestamp))
    return found
