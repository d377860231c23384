"""Cutting a log off: from an offset on, or altogether.

The next start trusts what lies below the recovery point on disk. So that is lowered first, by whoever keeps it there: a
crash in the middle of a cut then leaves a log that is looked at, not one that is half gone and believed.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors import StorageError
from ottla.storage import layout
from ottla.storage.fs import empty_file
from ottla.storage.log.flusher import Done as Flushed
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment
from ottla.storage.producers import snapshots

WritePoint = Callable[[], None]  # writes the log's recovery point down, or raises: then nothing is cut


def no_point_on_disk() -> None:
    """For a log of which no checkpoint tells: a copy that is not complete yet, a directory by itself."""


def truncate_to(log: Log, offset: int, write_point: WritePoint) -> bool:
    """Drop every record from `offset` on; False if there is none."""
    log.dir.check_online()
    if offset < 0:
        raise StorageError(f"{log.partition}: cannot truncate to {offset}")
    if offset < log.segments.first.base_offset:
        truncate_fully_and_start_at(log, offset, write_point)
        return True
    lost: list[Flushed] = []
    if offset < log.end_offset:
        _lower_recovery_point(log, offset, write_point)
    try:
        if offset >= log.end_offset:
            log.epochs.truncate_from_end(offset)
            return False
        later = [segment for segment in log.segments if segment.base_offset > offset]
        log.segments.from_offset(offset)[0].check_not_lent()
        for segment in reversed(later):
            log.segments.remove(segment)
            segment.delete()
        active = log.segments.active
        active.open_for_append(log.config)
        end_offset = active.truncate_to(offset, log.now_ms())
        lost = log.flusher.cut(end_offset)
        log.end_at(active, end_offset, min(log.start_offset, end_offset))
    except OSError as error:
        raise log.dir.fail(error, f"truncating {log.partition}") from error
    finally:
        _tell_lost(log, lost)
    return True


def truncate_fully_and_start_at(
    log: Log, offset: int, write_point: WritePoint, start_offset: int | None = None
) -> None:
    """Drop everything; the next record gets `offset`."""
    log.dir.check_online()
    for segment in log.segments:
        segment.check_not_lent()
    _lower_recovery_point(log, 0, write_point)
    lost = log.flusher.cut(offset, begin_anew=True)
    try:
        old = list(log.segments)
        for segment in old:
            log.segments.remove(segment)
            segment.close()
        snapshots.delete_after(log.dir.fs, log.path, -1)
        log.producers.clear(offset)
        log.end_offset = log.high_watermark = offset
        # There is never a moment without a segment, nor with two that overlap.
        later = [segment for segment in old if segment.base_offset > offset]
        earlier = [segment for segment in old if segment.base_offset <= offset]
        if earlier:
            _delete_all(later)
            empty_file(log.dir.fs, earlier[-1].path(layout.LOG))
            log.begin_segment(offset)
            _delete_all([segment for segment in earlier if segment.base_offset != offset])
        else:
            log.begin_segment(offset)
            _delete_all(later)
        log.epochs.clear()
        log.end_at(log.segments.active, offset, offset if start_offset is None else start_offset)
    except OSError as error:
        raise log.dir.fail(error, f"truncating {log.partition}") from error
    finally:
        _tell_lost(log, lost)


def _lower_recovery_point(log: Log, offset: int, write_point: WritePoint) -> None:
    log.flusher.recovery_point = min(log.flusher.recovery_point, offset)
    write_point()


def _tell_lost(log: Log, lost: list[Flushed]) -> None:
    for done in lost:
        done(StorageError(f"{log.partition} was truncated before this was flushed"))


def _delete_all(segments: list[Segment]) -> None:
    """From the last on: what is left when the power goes is the beginning of the log."""
    for segment in reversed(segments):
        segment.delete()
