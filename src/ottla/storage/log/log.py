"""One partition's log: append, roll, flush. The rung below a partition and above its segments.

A `Log` is owned by one thread. Appends go to the page cache; `flush` and `when_flushed` bring them to disk (see
flusher.py). Loading is in storage/recovery/loading.py, reading in reader.py, truncation in truncation.py, retention in
retention.py, compaction in storage/cleaning/compaction.py.

Offsets of a log, in order: log start <= last stable <= high watermark <= end. The recovery point lies between log
start and end: all below it is known to be on disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NamedTuple

from ottla.config import LogConfig
from ottla.errors import (
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
    StorageError,
    UnexpectedAppendOffsetError,
)
from ottla.names import Bytes, TopicPartition
from ottla.records import batch, coalesce_kernel, kernel
from ottla.runtime import Runtime
from ottla.storage import layout
from ottla.storage.fs import empty_file, is_full
from ottla.storage.handles import HandlePool
from ottla.storage.log import follower, producer_replay, validation
from ottla.storage.log.batch_run import BatchRun
from ottla.storage.log.flusher import Flusher
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.log.segment_set import SegmentSet
from ottla.storage.log.swap import swap_in
from ottla.storage.log.validation import Origin, Validated
from ottla.storage.log_dir import LogDir
from ottla.storage.losses import Loss
from ottla.storage.producers import snapshots
from ottla.storage.producers.state import BatchSummary, ProducerState

_MANY_PRODUCERS = 500  # whose snapshot takes a few milliseconds


class AppendInfo(NamedTuple):
    """What an append did. A duplicate was not written again: its offsets are those of the first time."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    size_bytes: int
    is_duplicate: bool = False


class Log:
    """The log of one partition. Made by recovery.load_log."""

    def __init__(
        self,
        log_dir: LogDir,
        path: str,
        partition: TopicPartition,
        config: LogConfig,
        runtime: Runtime,
        *,
        segments: SegmentSet,
        producers: ProducerState,
        epochs: LeaderEpochs,
        start_offset: int,
        end_offset: int,
        recovery_point: int,
        topic_id: uuid.UUID | None = None,
        handles: HandlePool | None = None,
    ) -> None:
        self.dir = log_dir
        self.path = path
        self.partition = partition
        self.config = config
        self.topic_id = topic_id
        self.segments = segments
        self.producers = producers
        self.epochs = epochs
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.high_watermark = start_offset
        self._runtime = runtime
        self._active = segments.active
        self._active.roll_jitter_ms = self._jitter_ms()
        self.use_handles(handles or HandlePool())
        # When and what: segments whose files are renamed and wait to be unlinked.
        self._deletions: list[tuple[int, Segment]] = []
        self.flusher = Flusher(self, runtime, recovery_point)
        self.closed_at: int | None = None  # where a clean stop ended it, with all its files on disk
        self.losses: list[Loss] = []  # on record beside it and not acknowledged, when it was loaded
        self.notices: list[str] = []  # what loading it has to say besides

    def use_handles(self, handles: HandlePool | None) -> None:
        """Count open files there from now on: that of the thread which owns the log; nowhere while it changes hands."""
        self._handles = handles
        for segment in self.segments:
            segment.use_pool(handles)

    def release(self) -> None:
        """Close all files; they are opened again when they are needed."""
        for segment in self.segments:
            segment.release_all()

    @property
    def has_handles(self) -> bool:
        return self._handles is not None

    # -- offsets

    @property
    def recovery_point(self) -> int:
        return self.flusher.recovery_point

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the first open, or not yet replicated, transaction begins."""
        first = self.producers.first_unstable_offset
        return None if first is None else max(first, self.start_offset)

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to."""
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def raise_high_watermark(self, offset: int) -> bool:
        """Move it up, never past the end, nor past what is flushed where every append is; True if it moved."""
        limit = self.flusher.recovery_point if self.config.flush_messages == 1 else self.end_offset
        if offset > limit:
            offset = limit
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.high_watermark_moved(offset)
        return True

    # -- append

    def append_as_leader(
        self,
        records: Bytes,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        max_unpacked_bytes: int = validation.UNLIMITED,
    ) -> AppendInfo:
        """Append one batch from a client (or the broker itself): checked, given offsets, written.

        The offsets and times are patched into `records` where it lies if it is writable. Nothing is appended if that
        would take long, see validation.py.
        """
        if self.dir.refusal is not None:
            self.dir.check_writable(self._runtime.monotonic_ms())
        now_ms = self._runtime.now_ms()
        is_hurried = max_unpacked_bytes != validation.UNLIMITED
        if is_hurried and len(self.producers.producers) >= _MANY_PRODUCERS and self.rolls_slowly(records):
            raise validation.TakesLongError
        checked = validation.validate(
            records, self.end_offset, leader_epoch, self.config, now_ms, origin, max_unpacked_bytes
        )
        return self._append_checked(checked, leader_epoch, now_ms)

    def append_validated(self, checked: validation.Validated, leader_epoch: int) -> AppendInfo:
        """Append a batch that was validated elsewhere."""
        if self.dir.refusal is not None:
            self.dir.check_writable(self._runtime.monotonic_ms())
        return self._append_checked(
            validation.placed(checked, self.end_offset, leader_epoch), leader_epoch, self._runtime.now_ms()
        )

    def _append_checked(self, checked: validation.Validated, leader_epoch: int, now_ms: int) -> AppendInfo:
        first_offset = self.end_offset
        # Not by name: looking up each field costs more than all that is done with them here.
        data, size, _, _, last_offset, max_timestamp, producer_id, _, _, append_time = checked
        if producer_id >= 0:
            duplicate = self._find_duplicate(checked)
            if duplicate is not None:
                time_ms = duplicate.timestamp  # told as the append time, whoever has set it, as Kafka does
                return AppendInfo(duplicate.first_offset, duplicate.last_offset, time_ms, time_ms, 0, True)
        try:
            segment = self._segment_for(size, max_timestamp, first_offset, last_offset, now_ms)
            if leader_epoch != self.epochs.latest_epoch:
                self.epochs.assign(leader_epoch, first_offset)
            segment.append(data, size, last_offset, max_timestamp)
            self.end_offset = self.producers.end_offset = last_offset + 1
            if producer_id >= 0:
                producer_replay.apply_checked(self.producers, segment, checked)
        except OSError as error:
            raise self._refuse(error) from error
        return self._appended(first_offset, last_offset, max_timestamp, append_time, size)

    def _appended(
        self, first_offset: int, last_offset: int, max_timestamp: int, append_time: int, size: int
    ) -> AppendInfo:
        """What every append ends with."""
        if last_offset + 1 - self.flusher.requested >= self.config.flush_messages:
            self.flusher.request()
        # Not AppendInfo(...), for the same reason as in validation.py.
        return tuple.__new__(AppendInfo, (first_offset, last_offset, max_timestamp, append_time, size, False))

    def append_run(self, run: BatchRun, leader_epoch: int) -> AppendInfo | None:
        """Append the batches of a run, up to the first about which anything is special; `run.count` says how many.

        None if that is so of the first one: it is for `append_as_leader`, which then does what has to be done.
        """
        config = self.config
        active = self._active
        if (
            config.compression_type != "producer"
            or config.message_timestamp_type != "CreateTime"
            or leader_epoch != self.epochs.latest_epoch
            or self.dir.refusal is not None
        ):
            return None
        first_offset = self.end_offset
        count, size, last_offset, earliest, latest, latest_offset = coalesce_kernel.coalesce(
            run.received, run.places, run.count, first_offset, leader_epoch, config.max_message_bytes, config.compact,
            run.data, run.rows,
        )  # fmt: skip
        if not count:
            return None
        rows = run.rows
        now_ms = self._runtime.now_ms()
        has_producer = rows[kernel.PRODUCER_ID] >= 0
        if (
            active.size == 0
            or active.index_room < count
            or self._must_roll(active, size, latest, last_offset, now_ms)
            or latest - now_ms > config.message_timestamp_after_max_ms
            or earliest < now_ms - config.message_timestamp_before_max_ms
            or (
                has_producer
                and not self.producers.continues(
                    rows[kernel.PRODUCER_ID], rows[kernel.PRODUCER_EPOCH], rows[kernel.BASE_SEQUENCE]
                )
            )
        ):
            return None
        try:
            active.append_run(run.data, size, rows, count, latest, latest_offset)
            self.end_offset = self.producers.end_offset = last_offset + 1
            if has_producer:
                producer_replay.apply_rows(self.producers, active, rows, count)
        except OSError as error:
            self._refuse(error)
            return None  # each of the requests is told by itself that the directory is offline, or full
        run.count = count
        return self._appended(first_offset, last_offset, latest, -1, size)

    def _find_duplicate(self, checked: Validated) -> BatchSummary | None:
        """The same batch of its producer, if it is in the log already; refuses one that does not come next."""
        try:
            return producer_replay.check(self.producers, self.segments, checked)
        except OSError as error:
            raise self.dir.fail(error, f"reading {self.partition}") from error

    def _refuse(self, error: OSError) -> StorageError:
        """An append that failed. For want of room, its segment has none of it."""
        refusal = self.dir.refuse(error, f"appending to {self.partition}")
        if not self.dir.offline:
            self.flusher.request()  # what was cut off again must not come back behind what is appended next
        return refusal

    def append_as_follower(self, records: Bytes) -> AppendInfo | None:
        """Append batches fetched from a leader, with the offsets they have. None if there is no whole batch."""
        if self.dir.refusal is not None:
            self.dir.check_writable(self._runtime.monotonic_ms())
        checked = follower.check(records, self.end_offset, self.config)
        if checked is None:
            return None
        first_offset = checked.first_offset
        if first_offset < self.end_offset:
            raise UnexpectedAppendOffsetError(
                f"{self.partition}: first offset {first_offset} lies before the log's end {self.end_offset}"
            )
        now_ms = self._runtime.now_ms()
        try:
            # An old compressed message says only its last offset: a new segment begins at the log's end if that fits.
            is_v2 = checked.rows[kernel.MAGIC] == batch.MAGIC_V2
            roll_to = first_offset if is_v2 else checked.last_offset - MAX_RELATIVE_OFFSET
            segment = self._segment_for(
                checked.size, checked.max_timestamp, roll_to, checked.last_offset, now_ms
            )
            for epoch, offset in checked.epochs:
                self.epochs.assign(epoch, offset)
            segment.append_rows(records, checked.rows, checked.count)
            self.end_offset = checked.last_offset + 1
            producer_replay.apply_rows(self.producers, segment, checked.rows, checked.count)
            self.producers.end_offset = self.end_offset
        except OSError as error:
            raise self._refuse(error) from error
        return self._appended(first_offset, checked.last_offset, checked.max_timestamp, -1, checked.size)

    # -- rolling

    def _segment_for(
        self, size: int, max_timestamp: int, first_offset: int, last_offset: int, now_ms: int
    ) -> Segment:
        """The active segment, or a new one if any of the five reasons to roll holds."""
        active = self._active
        limit = self.config.effective_segment_bytes
        if size > limit:
            raise RecordBatchTooLargeError(
                f"{size} bytes do not fit into a segment of {limit} (segment.bytes)"
            )
        if self._must_roll(active, size, max_timestamp, last_offset, now_ms):
            return self.roll(first_offset)
        return active

    def rolls_slowly(self, records: Bytes) -> bool:
        """Whether this batch begins a segment, and the snapshot for that takes long to write."""
        if len(self.producers.producers) < _MANY_PRODUCERS:
            return False
        size, now_ms = len(records), self._runtime.now_ms()
        at = batch.MAX_TIMESTAMP_AT
        timestamp = (
            int.from_bytes(records[at : at + 8], "big", signed=True) if size >= batch.HEADER_SIZE else 0
        )
        return self._must_roll(self._active, size, max(now_ms, timestamp), self.end_offset + size, now_ms)

    def _must_roll(
        self, active: Segment, size: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        config = self.config
        return (
            active.size > config.effective_segment_bytes - size
            or (
                active.size > 0
                and self._waited_ms(active, max_timestamp, now_ms)
                > config.max_segment_ms - active.roll_jitter_ms
            )
            or active.index_full
            or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        )

    @staticmethod
    def _waited_ms(segment: Segment, max_timestamp: int, now_ms: int) -> int:
        first = segment.first_timestamp
        if first is None:
            first = segment.load_first_timestamp()
        return now_ms - segment.created_ms if first < 0 else max_timestamp - first

    def roll(self, expected_next_offset: int = 0) -> Segment:
        """Close the active segment for writing and begin a new one at the log's end (or a later offset)."""
        self.dir.check_online()
        base_offset = max(expected_next_offset, self.end_offset)
        active = self._active
        try:
            if base_offset == active.base_offset and active.size == 0:
                self.segments.remove(active)
                active.close()
            elif base_offset in self.segments or base_offset < active.base_offset:
                raise StorageError(
                    f"{self.partition}: cannot roll to {base_offset}: a segment begins there or later"
                )
            else:
                active.become_inactive()
            return self.begin_segment(base_offset)
        except OSError as error:
            if is_full(error):
                self._go_back_to(active, base_offset)
            raise self.dir.refuse(error, f"rolling {self.partition}") from error

    def _go_back_to(self, active: Segment, base_offset: int) -> None:
        """There was no room for a new segment: what is there of it goes, and the old one is appended to again."""
        try:
            new = self.segments.active
            if new is not active and new.base_offset == base_offset:
                self.segments.remove(new)
                new.close()
            if active.base_offset not in self.segments:
                self.segments.add(active)
            if base_offset != active.base_offset:
                Segment(self.dir.fs, self.path, base_offset, self.config).delete()
                snapshots.delete_at(self.dir.fs, self.path, base_offset)
            active.open_for_append(self.config)
            self._active = active
        except OSError as error:
            raise self.dir.fail(error, f"rolling {self.partition}") from error

    def begin_segment(self, base_offset: int) -> Segment:
        """A new active segment; what lies in its place, of a log cut off before, is not taken over."""
        fs = self.dir.fs
        for suffix in layout.SEGMENT_SUFFIXES:
            stray = f"{self.path}/{layout.segment_file(base_offset, suffix)}"
            if fs.exists(stray) and suffix != layout.LOG:
                fs.unlink(stray)
            elif fs.exists(stray):
                # Not unlinked: were no log file there when the power goes, the next start would count from 0 again.
                empty_file(fs, stray)
        segment = Segment(
            fs,
            self.path,
            base_offset,
            self.config,
            created_ms=self._runtime.now_ms(),
            roll_jitter_ms=self._jitter_ms(),
        )
        segment.use_pool(self._handles)
        segment.open_for_append(self.config)
        self.segments.add(segment)
        self._active = segment
        self.producers.end_offset = max(self.producers.end_offset, base_offset)
        snapshots.take(fs, self.path, self.producers)
        self.flusher.segment_added()
        return segment

    def now_ms(self) -> int:
        """The time by the clock that this log goes by."""
        return self._runtime.now_ms()

    def _jitter_ms(self) -> int:
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._runtime.randrange(jitter) if jitter > 0 else 0

    # -- flushing

    def flush(self) -> None:
        """Everything appended so far is on disk when this returns."""
        self.flusher.flush_now()

    def when_flushed(self, offset: int, done: Callable[[BaseException | None], None]) -> None:
        """Call `done(None)` once all below `offset` is on disk, or with the error that prevented it."""
        self.flusher.wait(offset, done)

    # -- cutting (see truncation.py)

    def end_at(self, active: Segment, end_offset: int, start_offset: int) -> None:
        """What lay behind `end_offset`, in `active`, has been cut off: forget what was known of it."""
        self._active = active
        self.end_offset = end_offset
        self.start_offset = start_offset
        self.high_watermark = min(self.high_watermark, end_offset)
        self.epochs.truncate_from_end(end_offset)
        snapshots.delete_after(self.dir.fs, self.path, end_offset)
        fs, now_ms = self.dir.fs, self._runtime.now_ms()
        producer_replay.rebuild(
            fs, self.path, self.segments, self.producers, start_offset, end_offset, now_ms
        )
        self.producers.high_watermark_moved(self.high_watermark)
        self.dir.fs.sync_dir(self.path)

    def raise_start_offset(self, offset: int) -> bool:
        """Records below `offset` are gone for readers from now on; their segments go with the next retention."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.partition}: log start {offset} would pass the high watermark {self.high_watermark}"
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        try:
            self.epochs.truncate_from_start(offset)
        except OSError as error:
            refusal = self.dir.refuse(error, f"moving the log start of {self.partition}")
            # Epochs that are gone may stay in the file for a while; this is how room is made.
            if self.dir.offline:
                raise refusal from error
        return True

    # -- removing segments

    def remove_segments(self, old: list[Segment]) -> None:
        """Take whole segments out; their files are renamed now and deleted after file.delete.delay.ms."""
        due_ms = self._runtime.monotonic_ms() + self.config.file_delete_delay_ms
        try:
            for segment in old:
                self.segments.remove(segment)
                segment.rename(layout.DELETED)
                self._deletions.append((due_ms, segment))
            # The log start is not written down where the first segment says it: that must be durable, then.
            self.dir.fs.sync_dir(self.path)
        except OSError as error:
            raise self.dir.fail(error, f"deleting segments of {self.partition}") from error

    def replace_segments(self, new: list[Segment], old: list[Segment]) -> None:
        """Put cleaned segments (see swap.py) in the place of old ones, which are deleted as in `remove_segments`."""
        due_ms = self._runtime.monotonic_ms() + self.config.file_delete_delay_ms
        try:
            swap_in(self.dir.fs, self.path, new, old)
            self.segments.replace(old, new)
            for segment in new:
                segment.release_all()
                segment.use_pool(self._handles)
            self._deletions += [(due_ms, segment) for segment in old]
            for segment in old:
                if segment.base_offset not in self.segments:
                    snapshots.delete_at(self.dir.fs, self.path, segment.base_offset)
        except OSError as error:
            raise self.dir.fail(error, f"replacing segments of {self.partition}") from error

    @property
    def has_deletions(self) -> bool:
        """Whether files wait to be unlinked."""
        return bool(self._deletions)

    def delete_due_files(self, *, all_of_them: bool = False) -> int:
        """Unlink the files whose delay is over; how many segments went."""
        now_ms = self._runtime.monotonic_ms()
        due = [entry for entry in self._deletions if all_of_them or entry[0] <= now_ms]
        try:
            for entry in due:
                entry[1].delete()
                self._deletions.remove(entry)
        except OSError as error:
            raise self.dir.fail(error, f"deleting files of {self.partition}") from error
        return len(due)

    @property
    def is_as_closed(self) -> bool:
        """Whether nothing has changed since the last clean stop, so that there is nothing to bring to disk."""
        is_same = self.closed_at == self.end_offset and self.flusher.is_untouched
        return is_same and not self._deletions and not self.epochs.is_behind

    def close(self) -> None:
        """Flush, trim the indexes and close all files: a clean stop."""
        self.dir.check_online()
        try:
            self._active.become_inactive()
            self.producers.end_offset = self.end_offset
            snapshots.take(self.dir.fs, self.path, self.producers)
            self.flusher.flush_now(everything=True)
            self.delete_due_files(all_of_them=True)
        except OSError as error:
            raise self.dir.refuse(error, f"closing {self.partition}") from error
        self.abandon()

    def abandon(self) -> None:
        """Close the files and do nothing else, as if the process had been killed."""
        self.flusher.stop()
        for segment in self.segments:
            segment.close()
