"""Brings a log's bytes to disk, with one sync for every append that waits (group commit).

While a sync is under way further requests only note how far they want it; when it ends, the next one covers them all.
The recovery point, below which nothing needs checking after a crash, moves only when a sync has succeeded. A sync
that fails takes the log directory offline, and whoever waited is told the error, never success.

The files are opened anew, by path, on the thread that syncs them: no handle is shared with the log's owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.errors import StorageError
from ottla.runtime import Runtime
from ottla.storage import layout, snapshots
from ottla.storage.fs import FileSystem
from ottla.storage.log_dir import LogDir
from ottla.storage.segment_set import SegmentSet

Done = Callable[[BaseException | None], None]


class Flushable(Protocol):
    """What the flusher needs to know of a log."""

    dir: LogDir
    path: str
    segments: SegmentSet
    end_offset: int


class Flusher:
    """Knows how far a log is on disk, and who waits for more."""

    def __init__(self, log: Flushable, runtime: Runtime, recovery_point: int) -> None:
        self._log = log
        self._runtime = runtime
        self.recovery_point = recovery_point
        self.requested = recovery_point  # how far a sync under way, or the last one, goes
        self.flushed_ms = runtime.monotonic_ms()
        self._waiting: list[tuple[int, Done]] = []
        self._busy = False
        self._again = False
        self._new_files = True  # names that are not yet durable
        self._cuts = 0  # a sync begun before a truncation says nothing about the log after it

    def wait(self, offset: int, done: Done) -> None:
        """Call `done` once all below `offset` is on disk."""
        if offset <= self.recovery_point:
            done(None)
            return
        self._waiting.append((offset, done))
        self.request()

    def request(self) -> None:
        """Flush soon; a sync under way is followed by another."""
        self.requested = self._log.end_offset
        if self._busy:
            self._again = True
            return
        self._busy = True
        target, cuts, work = self._log.end_offset, self._cuts, self._plan()
        self._runtime.run_blocking(work, lambda _, error: self._synced(target, cuts, error))

    def segment_added(self) -> None:
        """A roll: the old segment is flushed in the background, and the new one has a name to make durable."""
        self._new_files = True
        self.request()

    def flush_now(self, *, everything: bool = False) -> None:
        """Flush on this thread. `everything`: with the active segment's indexes, for a clean stop."""
        self._log.dir.check_online()
        target, cuts = self._log.end_offset, self._cuts
        self.requested = target
        error: OSError | None = None
        try:
            self._plan(everything=everything)()
        except OSError as failed:
            error = failed
        self._moved(target, cuts, error)
        if error is not None:
            raise self._log.dir.fail(error, "flushing") from error

    def cut(self, offset: int, *, begin_anew: bool = False) -> None:
        """The log is about to lose everything from `offset` on."""
        self._cuts += 1
        self._new_files = True
        self.recovery_point = offset if begin_anew else min(self.recovery_point, offset)
        self.requested = min(self.requested, self.recovery_point)
        cut_off = [entry for entry in self._waiting if begin_anew or entry[0] > offset]
        self._waiting = [entry for entry in self._waiting if entry not in cut_off]
        for _, done in cut_off:
            done(StorageError(f"{self._log.path}: truncated to {offset} before it was flushed"))

    def _plan(self, *, everything: bool = False) -> Callable[[], None]:
        """What to sync, decided now, done elsewhere: whole segments behind the active one, of that its log."""
        fs, directory, segments = self._log.dir.fs, self._log.path, self._log.segments
        paths = []
        for segment in segments.from_offset(self.recovery_point):
            paths.append(segment.path(layout.LOG))
            if segment is not segments.active or everything:
                paths += [segment.path(suffix) for suffix in layout.SEGMENT_SUFFIXES if suffix != layout.LOG]
        sync_names, self._new_files = self._new_files or everything, False
        if sync_names:
            paths += [
                snapshots.path_of(directory, s.base_offset) for s in segments.from_offset(self.recovery_point)
            ]
            paths.append(snapshots.path_of(directory, self._log.end_offset))

        def work() -> None:
            for path in paths:
                _sync_file(fs, path)
            if sync_names:
                fs.sync_dir(directory)

        return work

    def _synced(self, target: int, cuts: int, error: BaseException | None) -> None:
        self._busy = False
        self._moved(target, cuts, error)
        within_reach = any(offset <= self._log.end_offset for offset, _ in self._waiting)
        if error is None and (self._again or within_reach):
            self._again = False
            self.request()

    def _moved(self, target: int, cuts: int, error: BaseException | None) -> None:
        if error is not None:
            if isinstance(error, OSError):
                error = self._log.dir.fail(error, "flushing")
            told, self._waiting = self._waiting, []
            for _, done in told:
                done(error)
            return
        self.flushed_ms = self._runtime.monotonic_ms()
        if cuts == self._cuts:
            self.recovery_point = max(self.recovery_point, target)
        ready = [entry for entry in self._waiting if entry[0] <= self.recovery_point]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.recovery_point]
        for _, done in ready:
            done(None)


def _sync_file(fs: FileSystem, path: str) -> None:
    try:
        file = fs.open(path)
    except FileNotFoundError:
        return  # never written (most have no .txnindex), or deleted in the meantime
    try:
        file.sync()
    finally:
        file.close()
