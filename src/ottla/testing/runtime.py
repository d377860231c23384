"""A world without chance: a clock that moves when told, seeded random numbers, blocking work in order."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from ottla.runtime import Done

T = TypeVar("T")
R = TypeVar("R")

START_MS = 1_700_000_000_000


class SimulatedRuntime:
    """A `Runtime` on one thread. With `queued`, blocking work is done by `run_pending`, else at once."""

    def __init__(self, seed: int = 0, now_ms: int = START_MS, *, queued: bool = False) -> None:
        self._random = random.Random(seed)
        self._now_ms = now_ms
        self._monotonic_ms = 0
        self._queue: deque[Callable[[], None]] | None = deque() if queued else None

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self._now_ms += ms
        self._monotonic_ms += ms

    def set_clock(self, now_ms: int) -> None:
        """Set the wall clock, back if need be; the monotonic clock does not move."""
        self._now_ms = now_ms

    def randrange(self, stop: int) -> int:
        return self._random.randrange(stop)

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        if self._queue is None:
            done(*_attempt(work))
        else:
            self._queue.append(lambda: done(*_attempt(work)))

    def run_pending(self) -> int:
        """Do all queued work, and what that queues; the number of pieces done."""
        count = 0
        while self._queue:
            self._queue.popleft()()
            count += 1
        return count

    def forget_pending(self) -> None:
        """The process was killed: what is queued is never done."""
        if self._queue:
            self._queue.clear()

    def map_blocking(
        self,
        work: Callable[[T], R],
        items: Iterable[T],
        workers: int,
        on_done: Callable[[T], None] | None = None,
    ) -> list[tuple[T, R | None, BaseException | None]]:
        results: list[tuple[T, R | None, BaseException | None]] = []
        for item in items:
            results.append((item, *_attempt(partial(work, item))))
            if on_done:
                on_done(item)
        return results


def _attempt(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's result
        return None, error
