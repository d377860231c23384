"""Each log directory's own thread, and the logs that are lent to it.

A log belongs to the loop, which appends to it and reads from it directly. What may block on its disk (retention,
lookups, deletion) is done by the directory's lane: the log is lent to it, and while it is away every append and read
of that log goes through the lane too, in order. Nothing is shared, so nothing is locked.

A log with flush.messages=1 is lent for good, because each of its appends waits for the disk. The lane takes all that
has queued up, appends it, syncs each log once, and only then is anybody answered: one sync serves all who wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.replica.partition import Partition
from ottla.runtime import Done, Lane, LoopRuntime
from ottla.storage.handles import HandlePool
from ottla.storage.log import Log
from ottla.storage.log_dir import LogDir

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_LANE_HANDLES = 256


class _Job:
    """One piece of work on a lane."""

    __slots__ = ("done", "error", "log", "partition", "result", "work")

    def __init__(
        self, partition: Partition | None, log: Log | None, work: Callable[[], Any], done: Done[Any]
    ) -> None:
        self.partition = partition
        self.log = log  # to be on disk before `done`
        self.work = work
        self.done = done
        self.result: Any = None
        self.error: BaseException | None = None


class DirLane:
    """The thread of one log directory."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._queue: list[_Job] = []
        self._busy = False
        self.handles = HandlePool(_LANE_HANDLES)

    @property
    def is_idle(self) -> bool:
        return not self._busy

    def run(self, work: Callable[[], T], done: Done[T]) -> None:
        """Do something that touches the directory, but no log that somebody may use."""
        self._add(_Job(None, None, work, done))

    def run_on(
        self, partition: Partition, work: Callable[[], T], done: Done[T], *, to_flush: Log | None = None
    ) -> None:
        """Do something to a partition's log; with `to_flush`, `done` waits until it is on disk."""
        partition.lend()
        self._add(_Job(partition, to_flush, work, done))

    def _add(self, job: _Job) -> None:
        self._queue.append(job)
        if not self._busy:
            self._start()

    def _start(self) -> None:
        self._busy = True
        jobs, self._queue = self._queue, []
        self._lane.submit(lambda: _do(jobs), lambda _, error: self._finished(jobs, error))

    def _finished(self, jobs: list[_Job], error: BaseException | None) -> None:
        self._busy = False
        for job in jobs:
            if job.partition is not None:
                job.partition.give_back()
        if self._queue:
            self._start()  # before anybody is told: the disk need not wait for that
        for job in jobs:
            try:
                job.done(job.result, job.error or error)
            except Exception:
                _logger.exception("what was to follow work on a log directory failed")


def _do(jobs: list[_Job]) -> None:
    """On the lane's thread: all the work first, then one sync for each log that needs it."""
    to_flush: dict[Log, list[_Job]] = {}
    for job in jobs:
        try:
            job.result = job.work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's result
            job.error = error
        else:
            if job.log is not None:
                to_flush.setdefault(job.log, []).append(job)
    for log, waiting in to_flush.items():
        partition = waiting[0].partition
        assert partition is not None
        try:
            log.flush()
            partition.flushed(log)
        except Exception as error:  # noqa: BLE001 - as above
            for job in waiting:
                job.error = error


class Lanes:
    """The lanes of all log directories, made when they are first needed."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._lanes: dict[LogDir, DirLane] = {}

    def of(self, log_dir: LogDir) -> DirLane:
        lane = self._lanes.get(log_dir)
        if lane is None:
            name = f"dir-{len(self._lanes)}"
            lane = self._lanes[log_dir] = DirLane(self._runtime.lane(name))
        return lane

    def on(
        self, partition: Partition, work: Callable[[], T], done: Done[T], *, to_flush: Log | None = None
    ) -> None:
        """Do something that may block to a partition's log, on its directory's thread."""
        assert partition.log is not None
        self.of(partition.log.dir).run_on(partition, work, done, to_flush=to_flush)

    @property
    def are_idle(self) -> bool:
        return all(lane.is_idle for lane in self._lanes.values())
