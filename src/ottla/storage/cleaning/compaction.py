"""Compaction: which logs are due for it, and how its results get into the log. The work itself is in cleaner.py.

A cleaning goes in three steps, so that the long one can run on another thread:

    plan = compaction.plan(log, checkpoint, now_ms, runtime)      # owner of the log; None when nothing is due
    cleaner = plan.cleaner(map_bytes, load_factor, should_stop)
    group = cleaner.next_group()                                  # any thread; until it gives None
    compaction.install(log, plan, group)                          # owner again, for each group

Then `cleaner.cleaned_to` is the log's new first dirty offset, which cleaner-offset-checkpoint keeps. A crash before
that is written only makes the next cleaning look at more than it must. `compact` does it all at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.errors import CompactionAbortedError, DiskFullError, StorageError
from ottla.runtime import Runtime
from ottla.storage.cleaning.cleaner import CleanedGroup, Cleaner, CleaningJob
from ottla.storage.fs import describe, is_full
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment

_logger = logging.getLogger(__name__)

_HASH_KEYS = 1 << 64


class Cleanable(NamedTuple):
    """How dirty a log is."""

    first_dirty_offset: int
    end_offset: int  # cleaning stops before this segment
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # max.compaction.lag.ms is over

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Plan(NamedTuple):
    """What will be cleaned, frozen: the log goes on meanwhile."""

    source: CleaningJob
    segments: list[Segment]  # the log's own; the cleaner opens its own ones
    cuts: int
    dirty_ratio: float

    def cleaner(
        self,
        map_bytes: int,
        load_factor: float,
        should_stop: Callable[[], bool] = lambda: False,
        took: Callable[[int], None] = lambda size: None,
    ) -> Cleaner:
        """`should_stop` is asked now and then; when it says yes, the cleaner raises CompactionAbortedError.

        `took` is told how many bytes were read or written.
        """
        return Cleaner(self.source, map_bytes, load_factor, should_stop, took)


def cleanable(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable:
    """`checkpoint` is what cleaner-offset-checkpoint says of the log, if anything."""
    start, active = log.start_offset, log.segments.active
    first_dirty = start if checkpoint is None or not start <= checkpoint <= log.end_offset else checkpoint
    dirty = [segment for segment in log.segments.from_offset(first_dirty) if segment is not active]
    end = min(log.last_stable_offset, active.base_offset)
    if log.config.min_compaction_lag_ms > 0:
        newest = now_ms - log.config.min_compaction_lag_ms
        end = min([end, *(s.base_offset for s in dirty if s.largest_timestamp_ms() > newest)])
    # Only whole segments: the one that holds the end is left alone.
    end = log.segments.from_offset(end)[0].base_offset
    oldest = now_ms - log.config.max_compaction_lag_ms
    dirty = [segment for segment in dirty if segment.base_offset < end]
    return Cleanable(
        first_dirty,
        end,
        sum(segment.size for segment in log.segments if segment.base_offset < min(first_dirty, end)),
        sum(segment.size for segment in dirty),
        oldest > 0 and any(0 < segment.load_first_timestamp() < oldest for segment in dirty),
    )


def plan(
    log: Log, checkpoint: int | None, now_ms: int, runtime: Runtime, *, force: bool = False
) -> Plan | None:
    """What to clean now, or None if the log is clean enough. `force`: however little is dirty."""
    state = cleanable(log, checkpoint, now_ms)
    is_due = log.config.compact and (
        state.is_overdue or state.dirty_ratio > log.config.min_cleanable_dirty_ratio
    )
    if not state.dirty_bytes or not (is_due or force):
        return None
    segments = [segment for segment in log.segments if segment.base_offset < state.end_offset]
    later = (segment for segment in log.segments if segment.base_offset >= state.end_offset)
    producers = log.producers.producers.values()
    source = CleaningJob(
        fs=log.dir.fs,
        directory=log.path,
        config=log.config,
        bases=[segment.base_offset for segment in segments],
        first_dirty_offset=state.first_dirty_offset,
        end_offset=state.end_offset,
        aborted_later=[txn for segment in later for txn in segment.txn_index.entries],
        last_data_offsets={producer.batches[-1].last_offset for producer in producers if producer.batches},
        marker_epochs={
            producer.producer_id: producer.epoch for producer in producers if not producer.batches
        },
        now_ms=now_ms,
        hash_key=(runtime.randrange(_HASH_KEYS), runtime.randrange(_HASH_KEYS)),
    )
    return Plan(source, segments, log.flusher.cuts, state.dirty_ratio)


def dirtiest(plans: Iterable[Plan | None]) -> Plan | None:
    """The plan to carry out first."""
    return max((p for p in plans if p is not None), key=lambda p: p.dirty_ratio, default=None)


def install(log: Log, plan: Plan, group: CleanedGroup) -> None:
    """Put cleaned segments in the place of the old ones; CompactionAbortedError if those are not the log's any more."""
    log.dir.check_online()
    old = [segment for segment in plan.segments if segment.base_offset in group.old]
    if log.flusher.cuts != plan.cuts or not set(old) <= set(log.segments):
        for segment in group.new:
            segment.delete()
        raise CompactionAbortedError(f"{log.partition} was cut or lost segments while it was being cleaned")
    log.replace_segments(group.new, old)


def compact(
    log: Log,
    checkpoint: int | None,
    now_ms: int,
    runtime: Runtime,
    *,
    map_bytes: int,
    load_factor: float,
    force: bool = False,
) -> int | None:
    """Clean a log on this thread; its new first dirty offset, or None if there was nothing to do."""
    log.dir.check_online()
    todo = plan(log, checkpoint, now_ms, runtime, force=force)
    if todo is None:
        return None
    cleaner = todo.cleaner(map_bytes, load_factor)
    try:
        while (group := cleaner.next_group()) is not None:
            install(log, todo, group)
    except OSError as error:
        raise refuse(log, error) from error
    return cleaner.cleaned_to


def refuse(log: Log, error: OSError) -> StorageError:
    """A cleaning that met an error of the disk. For want of room, what was made of it is gone again: the log is as it
    was, and appends may go on, they need less."""
    if not is_full(error):
        return log.dir.fail(error, f"compacting {log.partition}")
    _logger.warning("%s cannot be compacted for now: %s", log.partition, describe(error))
    return DiskFullError(f"{log.partition} cannot be compacted: {describe(error)}")
