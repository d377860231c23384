"""Opens a partition directory: finishes or undoes what a crash interrupted, and builds a `Log` from what is there.

In order: leftovers of deletion, cleaning and swapping; the segments; after an unclean stop every segment from the
recovery point on is read in full, cut at its last good batch, and its indexes are rebuilt; then log start and end,
leader epochs and producer state. After a clean stop nothing is read but the tail of the last segment.
"""

from __future__ import annotations

import uuid

from ottla.config import LogConfig
from ottla.errors import CorruptCheckpointError
from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout, losses, quarantine
from ottla.storage.handles import HandlePool
from ottla.storage.layout import SegmentFile
from ottla.storage.log import producer_replay, rebuilding
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.log import Log
from ottla.storage.log.segment import MAX_RELATIVE_OFFSET, Segment
from ottla.storage.log.segment_set import SegmentSet
from ottla.storage.log_dir import LogDir
from ottla.storage.producers import snapshots
from ottla.storage.producers.state import ProducerState
from ottla.storage.recovery import leftovers, strangers
from ottla.storage.recovery.missing import Missing
from ottla.storage.recovery.segments import quick_end, recover_segment, segment_end_offset
from ottla.storage.recovery.split import SegmentOverflowError, check_range, split
from ottla.storage.recovery.witnesses import Expected, Witness, expect


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
    witness: Witness | None = None,
) -> Log:
    """The log in directory `path`, which is made if it is not there.

    `may_have_gaps`: offsets may be missing on purpose, because a cleaner has been here or nothing is known of the
    log. Otherwise a gap before a segment that was not flushed is damage, and the log ends there. What was there, as
    `witness` says, and is gone is put on record (storage/losses.py).
    """
    log_dir.check_online()
    try:
        if not log_dir.fs.is_dir(path):
            log_dir.fs.make_dir(path)
            log_dir.fs.sync_dir(path.rpartition("/")[0])
        loader = _Loader(
            log_dir, path, config, runtime, clean, recovery_point, start_offset,
            may_have_gaps or config.compact, producer_expiration_ms, witness,
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
        witness: Witness | None,
    ) -> None:
        self._dir = log_dir
        self._fs = log_dir.fs
        self._path = path
        self._config = config
        self._runtime = runtime
        self._clean = clean
        self._recovery_point = recovery_point
        self._start_offset = start_offset
        names = self._fs.list_dir(path)
        self._files = layout.segment_files(names)
        self._has_changed = False  # files, by loading them;
        self._has_cut = False  # and that for good: records are gone, or under another name
        self._taken: list[int] | None = None  # the offsets of snapshots, as long as they are known
        # Repairs once left gaps on purpose, with the bytes they took out beside them, and put nothing on record.
        repaired = losses.FILE not in names and any(map(quarantine.is_pieces, names))
        self._may_have_gaps = may_have_gaps or repaired
        self._now_ms = runtime.now_ms()
        self._producers = ProducerState(producer_expiration_ms)
        self._flushed_ms = witness.written_ms if witness is not None else None
        found_by = losses.START if clean else losses.RECOVERY
        self._epochs = self._load_epochs()
        expected = Expected(None, 0)
        if witness is not None:
            expected = expect(witness, self._files, self._epochs.entries, clean=clean)
        on_record = losses.FILE in names
        self._missing = Missing(
            self._fs, path, self._now_ms, found_by, expected, start_offset=start_offset, on_record=on_record
        )
        self._segments = SegmentSet()
        self._ends: dict[int, int | None] = {}  # of segments, by base offset; None: to be read again

    def load(self, partition: TopicPartition, handles: HandlePool | None) -> Log:
        end_offset = self._load_segments()
        self._note_what_is_missing()
        start_offset = max(self._start_offset, self._segments.first.base_offset)
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(start_offset)
        active = self._segments.active
        active.open_for_append(self._config)
        # Those that are gone tell of records that are.
        snapshots.delete_after(self._fs, self._path, end_offset, self._snapshots())
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
        if self._must_flush():
            log.flush()
        # After a clean stop all of it is on disk, and stays so until something is changed.
        if self._clean and not self._has_changed and (end_offset == 0 or end_offset in self._snapshots()):
            log.closed_at = end_offset
        log.losses = self._missing.open
        log.notices = self._missing.notices
        return log

    def _must_flush(self) -> bool:
        """Whether what was recovered is flushed right here. A log that is whole is as it was before the crash: whoever
        opens many flushes those together (storage/log_manager.py), because to sync one after the other takes long."""
        unflushed = self._segments.from_offset(self._recovery_point)
        return not self._clean and (self._has_cut or len(unflushed) > 1 or self._config.waits_for_flush)

    def _snapshots(self) -> list[int]:
        if self._taken is None:
            self._taken = snapshots.offsets(self._fs, self._path)
        return self._taken

    def _load_segments(self) -> int:
        """Bring the segments into order; returns the end offset."""
        files: list[SegmentFile] | None = self._files
        while True:
            found = leftovers.clean_up(self._fs, self._path, self._config, self._now_ms, files)
            self._segments = SegmentSet(found)
            is_plain = files is not None and not any(file.marker for file in files)
            self._taken = snapshots.taken_in(files) if files is not None and is_plain else None
            self._has_changed = self._has_cut = not is_plain
            files = None  # whoever comes here again has changed them
            unflushed = [] if self._clean else self._segments.from_offset(self._recovery_point)
            self._ends = {
                segment.base_offset: None if segment in unflushed else quick_end(self._fs, segment)
                for segment in self._segments
            }
            if self._puts_strangers_right():
                continue
            self._taken = snapshots.delete_strays(
                self._fs, self._path, self._segments.bases, self._snapshots()
            )
            try:
                self._check_flushed()
                end_offset = self._recover_tail()
                if not unflushed or not self._puts_strangers_right():
                    return end_offset
            except SegmentOverflowError as overflow:
                self._may_have_gaps = True  # only a gap can have made it overflow
                self._producers.clear()  # a part of the segment has been replayed
                split(self._fs, self._path, overflow.segment, self._config)

    def _puts_strangers_right(self) -> bool:
        return strangers.put_right(self._fs, self._path, self._segments, self._ends, self._missing)

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
            end = self._ends[segment.base_offset]
            if end is not None:
                check_range(segment, end)
            if segment in unflushed:
                continue
            if segment in doubtful or end is None:
                # No later start would look at it again, unless it is interrupted: indexes that are half written look
                # whole. So they are written aside.
                self._recover(segment, flags=0, aside=True)
            if self._was_changed_later(segment):
                self._missing.look_inside(segment, self._end_of(segment))

    def _was_changed_later(self, segment: Segment) -> bool:
        """Whether somebody wrote into it after it was flushed. All flushed ones were, after a copy: that costs time."""
        if self._flushed_ms is None or segment.size == 0:
            return False
        return self._fs.modified_ms(segment.path(layout.LOG)) > self._flushed_ms

    def _note_what_is_missing(self) -> None:
        """After this, epochs, snapshots and checkpoints are made to fit the log that is left."""
        ends = {segment.base_offset: self._end_of(segment) for segment in self._segments}
        self._missing.judge(self._segments, ends, may_have_gaps=self._may_have_gaps)
        end, closed_at = ends[self._segments.active.base_offset], self._missing.expected.end_offset
        if self._clean and 0 < closed_at < end:
            self._missing.notices.append(
                f"{self._path}: the log ends at {end}, but was closed at {closed_at}: is it that of another partition?"
            )

    def _end_of(self, segment: Segment) -> int:
        """Where a segment ends that is known to be whole by now."""
        end = self._ends.get(segment.base_offset)
        if end is None:
            end = segment_end_offset(segment) if segment.size else segment.base_offset
            self._ends[segment.base_offset] = end
        return end

    def _recover_tail(self) -> int:
        """Recover what is not known to be flushed; returns the end offset. There is an active segment afterwards."""
        if not self._clean and len(self._segments):
            self._recover_unflushed()
        if len(self._segments):
            end_offset = self._end_of(self._segments.active)
            if end_offset >= self._start_offset:
                return end_offset
            # Everything that is left lies below the log start: begin anew there.
            for segment in reversed(list(self._segments)):
                self._drop(segment)
            snapshots.delete_after(self._fs, self._path, -1)
            self._taken = None
            self._epochs.clear()
        base_offset = self._start_offset
        self._segments.add(Segment(self._fs, self._path, base_offset, self._config, created_ms=self._now_ms))
        return base_offset

    def _recover_unflushed(self) -> None:
        damaged = False
        for segment in self._segments.from_offset(self._recovery_point):
            if damaged:
                self._missing.dropping(segment, "the log was cut before it")
                self._drop(segment)
                continue
            cut = self._recover(segment)
            self._has_cut = self._has_cut or cut
            next_base = self._segments.next_base(segment)
            damaged = next_base is not None and (cut or self._has_gap(segment, next_base))
        if damaged:
            self._has_cut = True
            self._fs.sync_dir(self._path)

    def _has_gap(self, segment: Segment, next_base: int) -> bool:
        """Whether records before the next segment are lost: a file's name may be on disk where its data is not.
        A gap that does not fit into a segment is none: it was the reason to roll."""
        fits = next_base - segment.base_offset <= MAX_RELATIVE_OFFSET
        end_offset = self._end_of(segment)
        return not self._may_have_gaps and fits and not self._missing.explains(end_offset, next_base)

    def _drop(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.delete()

    def _recover(self, segment: Segment, flags: int = kernel.CHECK_CRC, *, aside: bool = False) -> bool:
        """Read a segment in full, cut it at its last good batch, rebuild its indexes; True if anything was cut."""
        if segment.size == 0 and quick_end(self._fs, segment) is not None:
            self._ends[segment.base_offset] = segment.base_offset
            # Most partitions of a large broker are empty: there is nothing to read or to rebuild.
            return False
        self._has_changed = True
        start_offset = max(self._start_offset, self._segments.first.base_offset)
        self._bring_producers_to(start_offset, segment.base_offset)
        rebuilding.begin(segment, self._config, aside=aside)
        next_base = self._segments.next_base(segment)

        def cutting(expected_offset: int) -> None:
            self._missing.cutting(segment, next_base, expected_offset, flags)

        cut = recover_segment(self._runtime, segment, self._producers, self._epochs, flags, cutting)
        if aside:
            rebuilding.install_indexes(self._fs, self._path, segment)
        self._ends[segment.base_offset] = None
        self._producers.end_offset = self._end_of(segment)
        snapshots.take(self._fs, self._path, self._producers)
        self._taken = None
        return cut

    def _bring_producers_to(self, start_offset: int, end_offset: int) -> None:
        """State as of `end_offset`. What the segments before it left is better than the snapshot they left: that has
        one batch of each producer, and a client sends again all five that it had under way when the broker died."""
        if self._producers.end_offset != end_offset or not self._producers.producers:
            producer_replay.rebuild(
                self._fs, self._path, self._segments, self._producers, start_offset, end_offset, self._now_ms,
                self._snapshots(),
            )  # fmt: skip
            return
        self._producers.remove_expired(self._now_ms)
        # Transactions that have ended count no more, as in snapshots.
        self._producers.high_watermark_moved(end_offset)
