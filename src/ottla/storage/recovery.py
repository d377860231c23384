"""Opens a partition directory: finishes or undoes what a crash interrupted, and builds a `Log` from what is there.

In order: leftovers of deletion, cleaning and swapping; the segments; after an unclean stop every segment from the
recovery point on is read in full, cut at its last good batch, and its indexes are rebuilt; then log start and end,
leader epochs and producer state. After a clean stop nothing is read but the tail of the last segment.
"""

from __future__ import annotations

import uuid
from array import array

from ottla.config import LogConfig
from ottla.errors import CorruptCheckpointError, CorruptIndexError, CorruptionError
from ottla.records import kernel
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout, leftovers, producer_replay, snapshots
from ottla.storage.fs import FileSystem
from ottla.storage.handles import HandlePool
from ottla.storage.layout import TopicPartition
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.parallel_scan import scan_whole
from ottla.storage.producer_state import ProducerState
from ottla.storage.scan import Scan
from ottla.storage.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.segment_set import SegmentSet
from ottla.storage.split import SegmentOverflowError, check_range, split

_INDEXES = (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX)


def load_log(
    log_dir: LogDir,
    path: str,
    partition: TopicPartition,
    config: LogConfig,
    runtime: Runtime,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    start_offset: int = 0,
    may_have_gaps: bool = False,
    producer_expiration_ms: int = 86_400_000,
    handles: HandlePool | None = None,
) -> Log:
    """The log in directory `path`, which is made if it is not there.

    `may_have_gaps`: offsets may be missing on purpose, because a cleaner has been here or nothing is known of the
    log. Otherwise a gap before a segment that was not flushed is damage, and the log ends there.
    """
    log_dir.check_online()
    try:
        if not log_dir.fs.is_dir(path):
            log_dir.fs.make_dir(path)
            log_dir.fs.sync_dir(path.rpartition("/")[0])
        loader = _Loader(
            log_dir, path, config, runtime, clean, recovery_point, start_offset,
            may_have_gaps or config.compact, producer_expiration_ms,
        )  # fmt: skip
        return loader.load(partition, handles)
    except OSError as error:
        raise log_dir.refuse(error, f"loading {partition}") from error


class _Loader:
    """The steps of loading one log, and what they share."""

    def __init__(
        self,
        log_dir: LogDir,
        path: str,
        config: LogConfig,
        runtime: Runtime,
        clean: bool,
        recovery_point: int,
        start_offset: int,
        may_have_gaps: bool,
        producer_expiration_ms: int,
    ) -> None:
        self._dir = log_dir
        self._fs = log_dir.fs
        self._path = path
        self._config = config
        self._runtime = runtime
        self._clean = clean
        self._recovery_point = recovery_point
        self._start_offset = start_offset
        # A repair leaves gaps on purpose, as a cleaner does, and the bytes it took out beside them.
        repaired = any(name.endswith(layout.QUARANTINE) for name in self._fs.list_dir(path))
        self._may_have_gaps = may_have_gaps or repaired
        self._now_ms = runtime.now_ms()
        self._producers = ProducerState(producer_expiration_ms)
        self._epochs = self._load_epochs()
        self._segments = SegmentSet()

    def load(self, partition: TopicPartition, handles: HandlePool | None) -> Log:
        end_offset = self._load_segments()
        start_offset = max(self._start_offset, self._segments.first.base_offset)
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(start_offset)
        active = self._segments.active
        active.open_for_append(self._config)
        snapshots.delete_after(self._fs, self._path, end_offset)  # they tell of records that are gone
        self._bring_producers_to(start_offset, end_offset)
        recovery_point = (
            end_offset if self._clean else min(max(self._recovery_point, start_offset), end_offset)
        )
        log = Log(
            self._dir,
            self._path,
            partition,
            self._config,
            self._runtime,
            segments=self._segments,
            producers=self._producers,
            epochs=self._epochs,
            start_offset=start_offset,
            end_offset=end_offset,
            recovery_point=recovery_point,
            topic_id=self._load_topic_id(),
            handles=handles,
        )
        if not self._clean:
            log.flush()
        return log

    def _load_segments(self) -> int:
        """Bring the segments into order; returns the end offset."""
        while True:
            self._segments = SegmentSet(leftovers.clean_up(self._fs, self._path, self._config, self._now_ms))
            snapshots.delete_strays(self._fs, self._path, self._segments.bases)
            try:
                self._check_flushed()
                return self._recover_tail()
            except SegmentOverflowError as overflow:
                self._may_have_gaps = True  # only a gap can have made it overflow
                self._producers.clear()  # a part of the segment has been replayed
                split(self._fs, self._path, overflow.segment, self._config)

    def _load_epochs(self) -> LeaderEpochs:
        path = f"{self._path}/{layout.LEADER_EPOCHS}"
        try:
            return LeaderEpochs(self._fs, path)
        except CorruptCheckpointError:
            # Only batches say the epochs now: read them all.
            self._clean, self._recovery_point, self._may_have_gaps = False, 0, True
            self._fs.unlink(path)
            return LeaderEpochs(self._fs, path)

    def _load_topic_id(self) -> uuid.UUID | None:
        try:
            return checkpoint.read_topic_id(self._fs, f"{self._path}/{layout.PARTITION_METADATA}")
        except CorruptCheckpointError:
            return None  # the records are worth more than their topic's id, which the cluster knows too

    def _check_flushed(self) -> None:
        """A quick look at segments that need no recovery. A bad index is rebuilt; records are cut only where the chain
        of batches breaks, because what lies below the recovery point was good once and is not given up for one CRC."""
        unflushed = [] if self._clean else self._segments.from_offset(self._recovery_point)
        # The segment of the last flushed offset may have been active then: only its log was flushed for certain.
        doubtful = [] if self._clean else self._segments.from_offset(max(0, self._recovery_point - 1))
        for segment in list(self._segments):
            if segment not in unflushed and (segment in doubtful or not _looks_whole(self._fs, segment)):
                # No later start would look at it again, unless it is interrupted: indexes that are half written look
                # whole. So they are written aside.
                self._recover(segment, flags=0, aside=True)

    def _recover_tail(self) -> int:
        """Recover what is not known to be flushed; returns the end offset. There is an active segment afterwards."""
        if not self._clean and len(self._segments):
            self._recover_unflushed()
        if len(self._segments):
            end_offset = segment_end_offset(self._segments.active)
            if end_offset >= self._start_offset:
                return end_offset
            # Everything that is left lies below the log start: begin anew there.
            for segment in reversed(list(self._segments)):
                self._drop(segment)
            snapshots.delete_after(self._fs, self._path, -1)
            self._epochs.clear()
        base_offset = self._start_offset
        self._segments.add(Segment(self._fs, self._path, base_offset, self._config, created_ms=self._now_ms))
        return base_offset

    def _recover_unflushed(self) -> None:
        damaged = False
        for segment in self._segments.from_offset(self._recovery_point):
            if damaged:
                self._drop(segment)
                continue
            cut = self._recover(segment)
            next_base = self._segments.next_base(segment)
            damaged = next_base is not None and (cut or self._has_gap(segment, next_base))
        if damaged:
            self._fs.sync_dir(self._path)

    def _has_gap(self, segment: Segment, next_base: int) -> bool:
        """Whether records before the next segment are lost: a file's name may be on disk where its data is not.
        A gap that does not fit into a segment is none: it was the reason to roll."""
        fits = next_base - segment.base_offset <= MAX_RELATIVE_OFFSET
        return not self._may_have_gaps and fits and segment_end_offset(segment) < next_base

    def _drop(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.delete()

    def _recover(self, segment: Segment, flags: int = kernel.CHECK_CRC, *, aside: bool = False) -> bool:
        """Read a segment in full, cut it at its last good batch, rebuild its indexes; True if anything was cut."""
        start_offset = max(self._start_offset, self._segments.first.base_offset)
        self._bring_producers_to(start_offset, segment.base_offset)
        segment.begin_rebuild(self._config, aside=aside)
        cut = recover_segment(self._runtime, segment, self._producers, self._epochs, flags)
        if aside:
            segment.install_indexes()
        self._producers.end_offset = segment_end_offset(segment)
        snapshots.take(self._fs, self._path, self._producers)
        return cut

    def _bring_producers_to(self, start_offset: int, end_offset: int) -> None:
        """State as of `end_offset`. What the segments before it left is better than the snapshot they left: that has
        one batch of each producer, and a client sends again all five that it had under way when the broker died."""
        if self._producers.end_offset != end_offset or not self._producers.producers:
            producer_replay.rebuild(
                self._fs, self._path, self._segments, self._producers, start_offset, end_offset, self._now_ms
            )
            return
        self._producers.remove_expired(self._now_ms)
        self._producers.high_watermark_moved(
            end_offset
        )  # transactions that have ended count no more, as in snapshots


def recover_segment(
    runtime: Runtime,
    segment: Segment,
    producers: ProducerState,
    epochs: LeaderEpochs,
    flags: int = kernel.CHECK_CRC,
) -> bool:
    """Rebuild a segment's indexes from its log, producer state and epochs along the way; True if its tail was cut."""
    size = segment.file.size()
    expected, noted = segment.base_offset, False
    for window in scan_whole(runtime, segment.file, size, flags):
        count = kernel.rows_in_order(window.rows, window.count, expected)
        if count:
            last = (count - 1) * kernel.ROW
            expected = window.rows[last + kernel.LAST_OFFSET] + 1
            check_range(segment, expected)
            good = window.rows[last + kernel.POSITION] + window.rows[last + kernel.SIZE]
            segment.index_recovered(window.rows, count, good)
            producer_replay.apply_rows(producers, segment, window.rows, count)
            noted = _note_epochs(window.rows, count, epochs) or noted
        if count < window.count:
            break
    if noted:
        epochs.write()
    cut = segment.size < size
    segment.end_rebuild()
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


def _looks_whole(fs: FileSystem, segment: Segment) -> bool:
    """Whether the indexes are there and sane, and the log ends with a whole batch."""
    if segment.size == 0:  # entries of batches that are gone would lead past the end
        return not any(fs.exists(path) and fs.size(path) for path in map(segment.path, _INDEXES))
    if not all(fs.exists(segment.path(suffix)) for suffix in (layout.INDEX, layout.TIME_INDEX)):
        return False
    try:
        segment.offset_index.sanity_check()
        segment.time_index.sanity_check()
        segment.txn_index.sanity_check()
        check_range(segment, segment_end_offset(segment))
    except CorruptionError:
        return False
    return True


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
