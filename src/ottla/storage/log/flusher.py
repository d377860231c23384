"""Brings a log's bytes to disk, with one sync for every append that waits (group commit).

While a sync is under way further requests only note how far they want it; when it ends, the next one covers them all.
The recovery point, below which nothing needs checking after a crash, moves only when a sync has succeeded. A sync
that fails takes the log directory offline, and whoever waited is told the error, never success.

The files are opened anew, by path, on the thread that syncs them: no handle is shared with the log's owner.

A log that is lent to another thread has its flusher held: nothing is begun in the background, and what a sync begun
before has to say waits, until the log is back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.errors import LogDirOfflineError, StorageError
from ottla.runtime import Runtime
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.log.segment_set import SegmentSet
from ottla.storage.log_dir import LogDir
from ottla.storage.producers import snapshots

Done = Callable[[BaseException | None], None]


class Flushable(Protocol):
    """What the flusher needs to know of a log."""

    dir: LogDir
    path: str
    segments: SegmentSet
    end_offset: int


class _Plan(NamedTuple):
    """One sync: how far it goes, and what it says nothing about should that have changed meanwhile."""

    target: int
    cuts: int
    names: int
    work: Callable[[], None]


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
        self._stopped = False
        self._held = False
        self._late: list[tuple[_Plan, BaseException | None]] = []  # syncs that ended while it was held
        self._names = 1  # changes of names in the directory so far,
        self._durable_names = 0  # and how many of them are on disk
        self._cuts = 0  # a sync begun before a truncation says nothing about the log after it

    @property
    def cuts(self) -> int:
        """How often the log was truncated."""
        return self._cuts

    @property
    def is_untouched(self) -> bool:
        """Whether the log has the segments that it was loaded with, and was not truncated."""
        return self._names == 1

    def wait(self, offset: int, done: Done) -> None:
        """Call `done` once all below `offset` is on disk."""
        if offset <= self.recovery_point:
            done(None)
            return
        self._waiting.append((offset, done))
        self.request()

    def request(self) -> None:
        """Flush soon; a sync under way is followed by another."""
        refusal = self._refusal()
        if refusal is not None:
            self._tell_all(refusal)
            return
        self.requested = self._log.end_offset
        if self._busy or self._held:
            self._again = True
            return
        self._busy = True
        plan = self._plan()
        self._runtime.run_blocking(plan.work, lambda _, error: self._synced(plan, error))

    def hold(self) -> None:
        """From now on the log belongs to another thread, which flushes by itself with `flush_now`."""
        self._held = True

    def let_go(self) -> None:
        """The log is back on its owner's thread."""
        self._held = False
        late, self._late = self._late, []
        for plan, error in late:
            self._synced(plan, error)
        if self._again and not self._busy:
            self._again = False
            if self.recovery_point < self._log.end_offset or self._names != self._durable_names:
                self.request()

    def segment_added(self) -> None:
        """A roll: the old segment is flushed in the background, and the new one has a name to make durable."""
        self._names += 1
        self.request()

    def flush_now(self, *, everything: bool = False) -> None:
        """Flush on this thread, the owner's. `everything`: with the active segment's indexes, for a clean stop."""
        self._log.dir.check_online()
        active = self._log.segments.active
        only_active = active.base_offset <= max(0, self.recovery_point - 1)
        if only_active and self._names == self._durable_names and not everything:
            # What comes after every append where each is flushed: only the active segment's log has something new.
            plan = _Plan(self._log.end_offset, self._cuts, self._names, active.file.sync)
        else:
            plan = self._plan(everything=everything)
        self.requested = plan.target
        error: OSError | None = None
        try:
            plan.work()
        except OSError as failed:
            error = failed
        self._moved(plan, error)
        if error is not None:
            raise self._log.dir.fail(error, "flushing") from error

    def cut(self, offset: int, *, begin_anew: bool = False) -> list[Done]:
        """The log loses everything from `offset` on, or all of it. Returns who waits for what is lost."""
        self._cuts += 1
        self._names += 1
        self.recovery_point = offset if begin_anew else min(self.recovery_point, offset)
        self.requested = min(self.requested, self.recovery_point)
        lost = [done for wanted, done in self._waiting if begin_anew or wanted > offset]
        self._waiting = [] if begin_anew else [entry for entry in self._waiting if entry[0] <= offset]
        return lost

    def stop(self) -> None:
        """The log is being let go of: a sync still under way changes nothing any more."""
        self._stopped = True
        self._tell_all(StorageError(f"{self._log.path} was closed before it was flushed"))

    def _plan(self, *, everything: bool = False) -> _Plan:
        """What to sync, decided now, done elsewhere: whole segments behind the active one, of that its log."""
        fs, directory, segments = self._log.dir.fs, self._log.path, self._log.segments
        # From the last flushed offset on: its segment may have been active then, with indexes not yet flushed.
        unflushed = segments.from_offset(max(0, self.recovery_point - 1))
        paths = []
        for segment in unflushed:
            paths.append(segment.path(layout.LOG))
            if segment is not segments.active or everything:
                paths += [segment.path(suffix) for suffix in layout.SEGMENT_SUFFIXES if suffix != layout.LOG]
        # Until one sync of the names has succeeded, every sync brings them along.
        sync_names = self._names != self._durable_names or everything
        if sync_names:
            paths += [snapshots.path_of(directory, segment.base_offset) for segment in unflushed]
            paths.append(snapshots.path_of(directory, self._log.end_offset))

        def work() -> None:
            for path in paths:
                _sync_file(fs, path)
            if sync_names:
                fs.sync_dir(directory)

        return _Plan(self._log.end_offset, self._cuts, self._names, work)

    def _synced(self, plan: _Plan, error: BaseException | None) -> None:
        if self._held:
            if isinstance(error, OSError):
                self._log.dir.fail(error, "flushing")
            self._late.append((plan, error))
            return
        self._busy = False
        if self._stopped:
            return
        self._moved(plan, error)
        if error is None and (self._again or (self._waiting and plan.cuts != self._cuts)):
            self._again = False
            self.request()

    def _moved(self, plan: _Plan, error: BaseException | None) -> None:
        if isinstance(error, OSError):
            error = self._log.dir.fail(error, "flushing")
        # Once anything in this directory has failed, a sync that says yes is not believed.
        error = error or self._refusal()
        if error is not None:
            self._tell_all(error)
            return
        self.flushed_ms = self._runtime.monotonic_ms()
        self._durable_names = max(self._durable_names, plan.names)
        if plan.cuts == self._cuts:
            self.recovery_point = max(self.recovery_point, plan.target)
        ready = [entry for entry in self._waiting if entry[0] <= self.recovery_point]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.recovery_point]
        for _, done in ready:
            done(None)

    def _refusal(self) -> BaseException | None:
        """Why nothing can be flushed any more, if so."""
        try:
            self._log.dir.check_online()
        except LogDirOfflineError as error:
            return error
        return StorageError(f"{self._log.path} is closed") if self._stopped else None

    def _tell_all(self, error: BaseException) -> None:
        told, self._waiting = self._waiting, []
        for _, done in told:
            done(error)


def _sync_file(fs: FileSystem, path: str) -> None:
    try:
        file = fs.open(path)
    except FileNotFoundError:
        return  # never written (most have no .txnindex), or deleted in the meantime
    try:
        file.sync()
    finally:
        file.close()
