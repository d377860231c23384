"""A broker's clock that a test can move: real time goes on, with an offset that the test sets.

Moving it is as if the machine had slept: whatever became due meanwhile is done once, at the new time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from ottla.runtime import Done, Timer
from ottla.server.loop import AsyncRuntime

T = TypeVar("T")

# A broker under load always has something under way; then moving the clock does not wait for ever.
SETTLE_S = 10.0


class ShiftedTime:
    """Real time and an offset: `wall_ms` for timestamps, `elapsed_ms` for what waits."""

    def __init__(self) -> None:
        self.wall_ms = 0
        self.elapsed_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.wall_ms

    def monotonic_ns(self) -> int:
        return time.monotonic_ns() + self.elapsed_ms * 1_000_000


class ShiftedRuntime(AsyncRuntime):
    """The broker's runtime on shifted time. It knows its timers, so that they can become due early."""

    def __init__(self, loop: asyncio.AbstractEventLoop, shifted: ShiftedTime) -> None:
        super().__init__(loop)
        self._shifted = shifted
        self._timers: set[_Timer] = set()
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def now_ms(self) -> int:
        return self._shifted.now_ms()

    def monotonic_ms(self) -> int:
        return self._shifted.monotonic_ns() // 1_000_000

    @property
    def monotonic_ns(self) -> Callable[[], int]:
        return self._shifted.monotonic_ns

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = _Timer(
            self._timers, self.monotonic_ms() + max(0.0, delay_ms), partial(self.watch.run, callback)
        )
        timer.arm(self._loop, max(0.0, delay_ms))
        return timer

    def _deliver(self, future: Future[T], done: Done[T]) -> None:
        self._under_way += 1
        self._idle.clear()

        def counted(result: T | None, error: BaseException | None) -> None:
            try:
                done(result, error)
            finally:
                self._under_way -= 1
                if not self._under_way:
                    self._idle.set()

        super()._deliver(future, counted)

    async def moved(self) -> None:
        """The time has been shifted: do what is due, and wait for what that begins on other threads."""
        now_ms = self.monotonic_ms()
        for timer in sorted(self._timers, key=lambda timer: timer.due_ms):
            timer.arm(self._loop, max(0.0, timer.due_ms - now_ms))
        await asyncio.sleep(0.002)  # the loop's own timers come back a millisecond late at most
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), SETTLE_S)


class _Timer:
    """A timer that can be armed again while it waits."""

    def __init__(self, owner: set[_Timer], due_ms: float, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self._owner = owner
        self._callback = callback
        self._handle: asyncio.Handle | None = None
        owner.add(self)

    def arm(self, loop: asyncio.AbstractEventLoop, delay_ms: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = (
            loop.call_later(delay_ms / 1000, self._fire) if delay_ms else loop.call_soon(self._fire)
        )

    def _fire(self) -> None:
        self._owner.discard(self)
        self._callback()

    def cancel(self) -> None:
        self._owner.discard(self)
        if self._handle is not None:
            self._handle.cancel()


class Clock:
    """What a test sees of it. `moved` is called after each shift, and returns when the broker has caught up."""

    def __init__(self, shifted: ShiftedTime, moved: Callable[[], None]) -> None:
        self._shifted = shifted
        self._moved = moved

    def now_ms(self) -> int:
        """What the broker takes for the time of day, as timestamps in records have it."""
        return self._shifted.now_ms()

    def advance(self, ms: int) -> None:
        """Let time pass: timers become due, waits end, segments age, connections grow idle.

        Returns when the work that became due is done. The clock of a broker only goes forward this way.
        """
        if ms < 0:
            raise ValueError(f"time does not pass by {ms} ms; use `set` to put the time of day back")
        self._shifted.wall_ms += ms
        self._shifted.elapsed_ms += ms
        self._moved()

    def set(self, now_ms: int) -> None:
        """Set the time of day, forward or back, and let it go on from there. Nothing that waits becomes due."""
        self._shifted.wall_ms += now_ms - self._shifted.now_ms()
