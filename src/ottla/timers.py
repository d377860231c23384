"""Timers for what there may be thousands of: waiting requests, sessions of members, answers to a whole group.

All of them share one timer of the runtime. What is due at the same moment is called a few milliseconds at a time, and
in between the loop serves others. Most timers are cancelled long before they are due: that only marks them, and those
marked are thrown out when they are more than the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final

from ottla.runtime import LoopRuntime, Timer
from ottla.turns import Turns

TURN_MS: Final = 2
_MANY: Final = 1000  # cancelled timers that may lie about


class _Due:
    """Something that will be called, unless it is cancelled."""

    __slots__ = ("callback", "timers")

    def __init__(self, timers: Timers, callback: Callable[[], None]) -> None:
        self.timers = timers
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.timers.cancelled()


class Timers:
    """What is due and when, in order. One timer of the runtime for all of it."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._heap: list[tuple[int, int, _Due]] = []
        self._count = 0  # of all that ever were: those due at the same time run in the order they came
        self._cancelled = 0
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._turns = Turns(runtime, self._call_due, TURN_MS)

    def __len__(self) -> int:
        """How many are going to be called."""
        return len(self._heap) - self._cancelled

    @property
    def size(self) -> int:
        """Of the queue, with those that were cancelled and lie about."""
        return len(self._heap)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        due_ms = self._runtime.monotonic_ms() + max(0, int(delay_ms))
        due = _Due(self, callback)
        self._count += 1
        heapq.heappush(self._heap, (due_ms, self._count, due))
        self._arm()
        return due

    def call_soon(self, callback: Callable[[], None]) -> None:
        """In one of the next turns, after what is due already."""
        self.call_later(0, callback)

    def cancelled(self) -> None:
        """One more lies about that will not be called."""
        self._cancelled += 1
        if self._cancelled > _MANY and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def _arm(self) -> None:
        if self._turns.is_coming or not self._heap:
            return
        due_ms = self._heap[0][0]
        if self._timer is not None and self._timer_ms <= due_ms:
            return
        self._disarm()
        left_ms = due_ms - self._runtime.monotonic_ms()
        if left_ms > 0:
            self._timer_ms = due_ms
            self._timer = self._runtime.call_later(left_ms, self._turns.take)
        else:
            self._turns.wake()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _call_due(self) -> Iterator[None]:
        """Call what is due; what comes meanwhile has its turn later."""
        self._disarm()
        now_ms, newest = self._runtime.monotonic_ms(), self._count
        while self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] <= newest:
            due = heapq.heappop(self._heap)[2]
            callback, due.callback = due.callback, None
            if callback is None:
                self._cancelled -= 1
            else:
                callback()
                yield
        self._arm()
