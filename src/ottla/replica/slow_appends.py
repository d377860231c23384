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
from typing import Protocol

from ottla.names import Bytes, TopicPartition
from ottla.replica.append_request import AppendRequest
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.runtime import Lane, LoopRuntime
from ottla.storage.log import validation
from ottla.storage.log.validation import Validated

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

    def __init__(self, hosted: Hosted, runtime: LoopRuntime, lanes: Lanes) -> None:
        self.hosted = hosted
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
            finished.request.finish()


class SlowAppend:
    """The entries of a request from the first of its batches on that takes long."""

    def __init__(self, slow: SlowAppends, request: AppendRequest, entries: Sequence[Entry]) -> None:
        self._slow = slow
        self.request = request
        self._left: deque[Entry] = deque((place, key, _kept(records)) for place, key, records in entries)
        self.size_bytes = sum(len(records) for _, _, records in self._left)

    @property
    def is_done(self) -> bool:
        return not self._left

    def next_check(self) -> Callable[[], Validated] | None:
        """What to do on another thread; None if there is nothing to check, because the batch is refused already."""
        _, key, records = self._left[0]
        try:
            partition = self._slow.hosted.find(key)
            config = partition.leader_log().config
        except Exception as error:  # noqa: BLE001 - one partition's trouble is no other's
            self._refuse(error)
            return None
        epoch, now_ms, origin = partition.leader_epoch, self._slow.runtime.now_ms(), self.request.origin
        return lambda: validation.validate(records, 0, epoch, config, now_ms, origin)

    def append(
        self, checked: Validated | None, error: BaseException | None, done: Callable[[], None]
    ) -> None:
        """Append what was checked, on the loop, or where the log is lent to; then `done`."""
        place, key, records = self._left[0]
        try:
            if checked is None:
                raise error if isinstance(error, Exception) else RuntimeError("a check was broken off")
            partition = self._slow.hosted.find(key)
            log = partition.leader_log()
            if partition.goes_by_lane or len(checked.data) > _LARGE_BYTES or log.rolls_slowly(checked.data):
                self._left.popleft()
                self.request.append_on_lane(self._slow.lanes, place, partition, records, checked, done)
                return
            info, moved = partition.append_validated(checked, self.request.acks)
        except Exception as failure:  # noqa: BLE001 - as above
            self._refuse(failure)
        else:
            self._left.popleft()
            self.request.succeeded(place, partition, info, moved, len(records))
        done()

    def _refuse(self, error: Exception) -> None:
        place, key, records = self._left.popleft()
        partition = self._slow.hosted.partitions.get(key)
        self.request.failed(place, key, partition, len(records), error)


def _kept(records: Bytes) -> Bytes:
    """A copy: whoever called has the buffer back before their turn comes. Only a mapped buffer is used for no more than
    one request (protocol/buffers.py), and stays as long as there are views of it."""
    is_mapped = isinstance(records, memoryview) and isinstance(records.obj, mmap.mmap)
    return records if is_mapped else bytearray(records)
