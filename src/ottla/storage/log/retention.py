"""Decides which old segments go, and takes them out: by time, by size, and below the log start offset.

Segments go from the oldest on, never one that reaches past the high watermark. When even the active one is due, it is
rolled first.
"""

from __future__ import annotations

import contextlib

from ottla.errors import DiskFullError
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment
from ottla.storage.producers import snapshots


def apply(log: Log, now_ms: int) -> list[Segment]:
    """Remove what is due; the segments that went."""
    log.dir.check_online()
    try:
        due = due_segments(log, now_ms)
        if not due:
            _catch_up(log)
            return []
        if len(due) == len(log.segments):
            try:
                log.roll()
            except DiskFullError:
                due.pop()  # no room for another: the active one stays, and what goes makes room
        first = log.segments.next_base(due[-1]) if due else None
        if first is None:
            return []
        # First the start, which the leader epochs have on disk: segments that go without it are taken for lost.
        log.raise_start_offset(max(log.start_offset, first))
        log.remove_segments(due)
        snapshots.delete_before(log.dir.fs, log.path, first)
        _catch_up(log)
    except OSError as error:
        raise log.dir.fail(error, f"applying retention to {log.partition}") from error
    return due


def _catch_up(log: Log) -> None:
    """Epochs that a full disk had no room for are written when there is some, or at the next retention."""
    if log.epochs.is_behind:
        with contextlib.suppress(OSError):
            log.epochs.write()


def due_segments(log: Log, now_ms: int) -> list[Segment]:
    """A prefix of the log's segments."""
    excess = log.size_bytes - log.config.retention_bytes if log.config.retention_bytes >= 0 else -1
    due: list[Segment] = []
    for segment in log.segments:
        next_base = log.segments.next_base(segment)
        end = log.end_offset if next_base is None else next_base
        if end > log.high_watermark or (next_base is None and segment.size == 0):
            break
        if not (
            (end <= log.start_offset and next_base is not None)
            or (log.config.delete and (_too_old(log, segment, now_ms) or segment.size <= excess))
        ):
            break
        excess -= segment.size
        due.append(segment)
    return due


def _too_old(log: Log, segment: Segment, now_ms: int) -> bool:
    return 0 <= log.config.retention_ms < now_ms - segment.largest_timestamp_ms()
