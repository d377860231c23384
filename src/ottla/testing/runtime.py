"""A world without chance: a clock that moves when told, seeded random numbers, blocking work in order."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.runtime import Done, Lane, Timer, attempt, map_in_turn

T = TypeVar("T")
R = TypeVar("R")

START_MS = 1_700_000_000_000


class SimulatedRuntime:
    """A `LoopRuntime` on one thread. With `queued`, blocking work is done by `run_pending`, else at once."""

    def __init__(self, seed: int = 0, now_ms: int = START_MS, *, queued: bool = False) -> None:
        self._random = random.Random(seed)
        self._now_ms = now_ms
        self._monotonic_ms = 0
        self._queued = queued
        self._queue: deque[Callable[[], None]] = deque()
        self._timers: list[_Timer] = []
        self._timer_count = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def sleep_ms(self, ms: float) -> None:
        """Time passes for whoever sleeps; timers that are due meanwhile fire at the next `advance`."""
        self._move_to(self._monotonic_ms + math.ceil(ms))

    def advance(self, ms: int) -> None:
        """Let time pass, and call what is due meanwhile, each at its time."""
        end_ms = self._monotonic_ms + ms
        while self._timers and self._timers[0].due_ms <= end_ms:
            timer = heapq.heappop(self._timers)
            self._move_to(max(timer.due_ms, self._monotonic_ms))
            timer.fire()
            if not self._queued:
                self.run_pending()
        self._move_to(end_ms)

    def _move_to(self, monotonic_ms: int) -> None:
        self._now_ms += monotonic_ms - self._monotonic_ms
        self._monotonic_ms = monotonic_ms

    def set_clock(self, now_ms: int) -> None:
        """Set the wall clock, back if need be; the monotonic clock does not move."""
        self._now_ms = now_ms

    def randrange(self, stop: int) -> int:
        return self._random.randrange(stop)

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        if not self._queued:
            done(*attempt(work))
        else:
            self._queue.append(lambda: done(*attempt(work)))

    def run_long(self, work: Callable[[], T], done: Done[T]) -> None:
        self.run_blocking(work, done)

    def run_one(self) -> bool:
        """Do the next piece of queued work; False if there is none."""
        if not self._queue:
            return False
        self._queue.popleft()()
        return True

    def run_pending(self) -> int:
        """Do all queued work, and what that queues; the number of pieces done."""
        count = 0
        while self.run_one():
            count += 1
        return count

    def forget_pending(self) -> None:
        """The process was killed: what is queued is never done."""
        self._queue.clear()
        self._timers.clear()

    def map_blocking(
        self,
        work: Callable[[T], R],
        items: Iterable[T],
        workers: int,
        on_done: Callable[[T], None] | None = None,
    ) -> list[tuple[T, R | None, BaseException | None]]:
        return map_in_turn(work, items, on_done)

    # -- what an event loop offers

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Called by `run_pending`."""
        self._queue.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Called by `advance`."""
        self._timer_count += 1
        timer = _Timer(self._monotonic_ms + max(0, int(delay_ms)), self._timer_count, callback)
        heapq.heappush(self._timers, timer)
        return timer

    @property
    def timers(self) -> int:
        """How many are set."""
        return sum(timer.callback is not None for timer in self._timers)

    def lane(self, name: str) -> Lane:
        return _Lane(self)


class _Timer:
    def __init__(self, due_ms: int, number: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self._number = number
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: _Timer) -> bool:
        return (self.due_ms, self._number) < (other.due_ms, other._number)

    def cancel(self) -> None:
        self.callback = None

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class _Lane:
    """On one thread everything is in order anyway."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self._runtime = runtime

    def submit(self, work: Callable[[], T], done: Done[T]) -> None:
        self._runtime.run_blocking(work, done)
