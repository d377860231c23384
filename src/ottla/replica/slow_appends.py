"""Produce requests whose batches take long to check: they are checked on a thread of their own, batch by batch.

A client's requests keep their order: while one of them is here, those that follow on its connection queue up behind it.
Different clients take turns, a batch at a time, so that nobody waits for all that another one has sent. Nothing is lent
or locked meanwhile: a batch is checked before it is known where in the log it will go, and the append itself is as
short as any other. One of many megabytes is written by the lane of its directory.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ottla.errors import NotLeaderOrFollowerError
from ottla.names import Bytes, TopicPartition
from ottla.replica.lanes import Lanes
from ottla.replica.results import AppendResult
from ottla.runtime import Lane, LoopRuntime
from ottla.storage.log import validation
from ottla.storage.log.log import AppendInfo
from ottla.storage.log.validation import Origin, Validated

if TYPE_CHECKING:
    from ottla.replica.appends import Appended, Appends
    from ottla.replica.partition import Partition
    from ottla.replica.waits import Unreplicated

_REFUSED_AT_ONCE = 100  # batches of which nothing had to be checked
_LARGE_BYTES = 2 << 20  # to write so much takes a millisecond

Entry = tuple[int, TopicPartition, Bytes]


class Memory(Protocol):
    """What the copies of waiting requests are charged to."""

    def hold(self, size_bytes: int) -> None: ...

    def let_go(self, size_bytes: int) -> None: ...


class UncountedMemory:
    """For whoever has no budget."""

    def hold(self, size_bytes: int) -> None: ...

    def let_go(self, size_bytes: int) -> None: ...


class SlowAppends:
    """The requests of all clients that are checked off the loop."""

    def __init__(self, appends: Appends, runtime: LoopRuntime, lanes: Lanes) -> None:
        self.appends = appends
        self.runtime = runtime
        self.lanes = lanes
        self.memory: Memory = UncountedMemory()
        self._thread: Lane | None = None
        self.queues: dict[object, deque[SlowAppend]] = {}  # by owner; changed only here
        self._turns: deque[object] = deque()  # owners whose next batch can be checked
        self._is_checking = False
        self._is_stopped = False

    def stop(self) -> None:
        """Append nothing more: the logs are about to be closed, and nobody is left to be told."""
        self._is_stopped = True

    def holds(self, owner: object) -> bool:
        """Whether requests of this client are here: then its next ones come here too."""
        return owner in self.queues

    def add(self, owner: object, request: SlowAppend) -> None:
        self.memory.hold(request.size_bytes)
        queue = self.queues.get(owner)
        if queue is not None:
            queue.append(request)
            return
        self.queues[owner] = deque([request])
        self._turns.append(owner)
        self._check_next()

    def _check_next(self) -> None:
        """One batch at a time: the other processors are for the loop and for what else the machine has to do."""
        for _ in range(_REFUSED_AT_ONCE):
            if not self._turns or self._is_checking or self._is_stopped:
                return
            owner = self._turns.popleft()
            check = self.queues[owner][0].next_check()
            if check is None:
                self._stepped(owner)
                continue
            self._is_checking = True
            if self._thread is None:
                self._thread = self.runtime.lane("checks")
            self._thread.submit(check, partial(self._checked, owner))
            return
        self.runtime.call_soon(self._check_next)

    def _checked(self, owner: object, checked: Validated | None, error: BaseException | None) -> None:
        self._is_checking = False
        if self._is_stopped:
            return
        self.queues[owner][0].append(checked, error, lambda: self._appended(owner))
        self._check_next()

    def _appended(self, owner: object) -> None:
        self._stepped(owner)
        self._check_next()

    def _stepped(self, owner: object) -> None:
        """A batch is appended or refused: the client's next one has its turn after those of the others."""
        queue = self.queues[owner]
        finished = queue.popleft() if queue[0].is_done else None
        if queue:
            self._turns.append(owner)
        else:
            del self.queues[owner]
        if finished is not None:  # last of all: whoever is told may come with the next request
            self.memory.let_go(finished.size_bytes)
            finished.finish()


class SlowAppend:
    """One request, from the first of its batches on that takes long."""

    def __init__(
        self,
        slow: SlowAppends,
        entries: Sequence[tuple[int, TopicPartition, Bytes]],
        acks: int,
        timeout_ms: int,
        origin: Origin,
        done: Appended,
        results: list[AppendResult],
        pending: list[Unreplicated],
        grown: list[tuple[Partition, bool]],
    ) -> None:
        self._left: deque[Entry] = deque((place, key, _kept(records)) for place, key, records in entries)
        self.size_bytes = sum(len(records) for _, _, records in self._left)
        self._slow = slow
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._origin = origin
        self._done = done
        self._results = results
        self._pending = pending
        self._grown = grown

    @property
    def is_done(self) -> bool:
        return not self._left

    def finish(self) -> None:
        appends = self._slow.appends
        appends.finish(self._results, self._pending, self._grown, self._timeout_ms, self._done)

    def next_check(self) -> Callable[[], Validated] | None:
        """What to do on another thread; None if there is nothing to check, because the batch is refused already."""
        _, key, records = self._left[0]
        try:
            partition = self._slow.appends.partition(key)
            config = partition.leader_log().config
        except Exception as error:  # noqa: BLE001 - one partition's trouble is no other's
            self._refuse(error)
            return None
        epoch, now_ms, origin = partition.leader_epoch, self._slow.runtime.now_ms(), self._origin
        return lambda: validation.validate(records, 0, epoch, config, now_ms, origin)

    def append(
        self, checked: Validated | None, error: BaseException | None, done: Callable[[], None]
    ) -> None:
        """Append what was checked, on the loop, or where the log is lent to; then `done`."""
        if checked is None:
            self._refuse(error if isinstance(error, Exception) else RuntimeError("a check was broken off"))
            done()
            return
        batch = checked
        try:
            partition = self._slow.appends.partition(self._left[0][1])
            log = partition.leader_log()
            if partition.goes_by_lane or len(batch.data) > _LARGE_BYTES or log.rolls_slowly(batch.data):
                self._slow.lanes.on(
                    partition,
                    lambda _: partition.append_validated(batch, self._acks),
                    lambda appended, failure: self._lane_appended(partition, appended, failure, done),
                    must_flush=partition.is_durable,
                )
                return
            info, moved = partition.append_validated(batch, self._acks)
        except Exception as failure:  # noqa: BLE001 - as above
            self._refuse(failure)
        else:
            self._accept(partition, info, moved)
        done()

    def _lane_appended(
        self,
        partition: Partition,
        appended: tuple[AppendInfo, bool] | None,
        error: BaseException | None,
        done: Callable[[], None],
    ) -> None:
        if error is None and partition.log is None:
            error = NotLeaderOrFollowerError(f"{partition.key} was deleted meanwhile")
        if appended is None or error is not None:
            self._refuse(error if isinstance(error, Exception) else RuntimeError("an append was broken off"))
        else:
            self._accept(partition, appended[0], True)
        done()

    def _accept(self, partition: Partition, info: AppendInfo, moved: bool) -> None:
        place, key, records = self._left.popleft()
        self._results[place] = self._slow.appends.success_of(
            key, partition, info, self._acks, self._pending, place, len(records)
        )
        self._grown.append((partition, moved))

    def _refuse(self, error: Exception) -> None:
        place, key, records = self._left.popleft()
        self._results[place] = self._slow.appends.failure_of(key, len(records), error)


def _kept(records: Bytes) -> Bytes:
    """A copy: whoever called has the buffer back before their turn comes. Only a mapped buffer is used for no more than
    one request (protocol/buffers.py), and stays as long as there are views of it."""
    is_mapped = isinstance(records, memoryview) and isinstance(records.obj, mmap.mmap)
    return records if is_mapped else bytearray(records)
