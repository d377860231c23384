"""Each log directory's own thread, and the logs that are lent to it.

A log belongs to the loop, which appends to it and reads from it directly. What may block on its disk (retention,
lookups, deletion) is done by the directory's lane: the log is lent to it, and while it is away every append and read
of that log goes through the lane too, in order. Nothing is shared, so nothing is locked.

A log with flush.messages is lent for good, because its appends wait for the disk: each of them with 1, else the one
that reaches the number. The lane takes all that has queued up, appends it, syncs each log once if that is due, and only
then is anybody answered: one sync serves all who wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.errors import NotLeaderOrFollowerError
from ottla.replica.partition import Partition
from ottla.runtime import Done, Lane, LoopRuntime
from ottla.storage.handles import HandlePool
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class _Job:
    """One piece of work on a lane."""

    __slots__ = ("done", "error", "must_flush", "partition", "result", "work")

    def __init__(
        self, partition: Partition | None, work: Callable[[], Any], done: Done[Any], must_flush: bool
    ) -> None:
        self.partition = partition
        self.work = work
        self.done = done
        self.must_flush = must_flush  # what flush.messages asks for is on disk before `done`
        self.result: Any = None
        self.error: BaseException | None = None


class DirLane:
    """The thread of one log directory."""

    def __init__(self, lane: Lane, handles: int) -> None:
        self._lane = lane
        self._queue: list[_Job] = []
        self._busy = False
        self.handles = HandlePool(handles)

    def run(self, work: Callable[[], T], done: Done[T]) -> None:
        """Do something that touches the directory, but no log that somebody may use."""
        self.add(_Job(None, work, done, must_flush=False))

    def add(self, job: _Job) -> None:
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
    """On the lane's thread: all the work first, then one sync for each log that has reached its flush.messages."""
    to_flush: dict[Partition, list[_Job]] = {}
    for job in jobs:
        try:
            if job.partition is not None:
                job.partition.enter_lane()
            job.result = job.work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's result
            job.error = error
        else:
            if job.must_flush and job.partition is not None:
                to_flush.setdefault(job.partition, []).append(job)
    for partition, waiting in to_flush.items():
        try:
            partition.flush()
        except Exception as error:  # noqa: BLE001 - as above
            for job in waiting:
                job.error = error
    for partition in {job.partition for job in jobs if job.partition is not None}:
        partition.leave_lane()


class Lanes:
    """The lanes of all log directories, made when they are first needed."""

    def __init__(self, runtime: LoopRuntime, handles: int) -> None:
        self._runtime = runtime
        self._handles = handles  # that the logs of one directory may hold open while they are on its thread
        self._lanes: dict[LogDir, DirLane] = {}
        self._paused: dict[Partition, list[_Job]] = {}

    def of(self, log_dir: LogDir) -> DirLane:
        lane = self._lanes.get(log_dir)
        if lane is None:
            name = f"dir-{len(self._lanes)}"
            lane = self._lanes[log_dir] = DirLane(self._runtime.lane(name), self._handles)
        return lane

    def on(
        self,
        partition: Partition,
        work: Callable[[Log], T],
        done: Done[T],
        *,
        must_flush: bool = False,
    ) -> None:
        """Do something that may block to a partition's log, on its directory's thread.

        With `must_flush`, what was appended is on disk before `done` if it has reached flush.messages.
        """
        partition.lend()
        job = _Job(partition, lambda: work(partition.lent_log), done, must_flush)
        if partition in self._paused:
            self._paused[partition].append(job)
        else:
            self.of(partition.lent_log.dir).add(job)

    def set_durable(self, partition: Partition, is_durable: bool) -> None:
        """A log that is flushed before anything is answered stays with its directory's thread."""
        if is_durable == partition.is_durable:
            return
        partition.is_durable = is_durable
        if is_durable:
            partition.lend()
        else:
            self.on(partition, lambda _: None, lambda _, error: partition.give_back())

    def pause(self, partition: Partition) -> None:
        """What comes from now on waits for `resume`, because the log is about to be another one."""
        partition.lend()
        self._paused[partition] = []

    def resume(self, partition: Partition) -> None:
        for job in self._paused.pop(partition):
            if partition.log is not None:
                self.of(partition.log.dir).add(job)
            else:
                self._refuse(partition, job)
        partition.give_back()

    def _refuse(self, partition: Partition, job: _Job) -> None:
        partition.give_back()
        job.done(None, NotLeaderOrFollowerError(f"{partition.key} was deleted meanwhile"))

    def drain(self, done: Callable[[], None]) -> None:
        """Call `done` when everything that is queued now is done."""
        left = len(self._lanes) + 1

        def one_is_through(_: None, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        for lane in self._lanes.values():
            lane.run(_nothing, one_is_through)
        one_is_through(None, None)


def _nothing() -> None: ...
