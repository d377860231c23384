"""The event loop as the floors below see it: clock, chance, timers, threads.

State lives on the loop's thread. Blocking work goes to a small pool, or to a lane (one thread that keeps the order),
and what it found comes back to the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from ottla.runtime import Done, Lane, LoopRuntime, RealWorld, Timer
from ottla.stall_watch import StallWatch

T = TypeVar("T")

_LONG_WORKERS = 64


class BrokerRuntime(LoopRuntime, Protocol):
    """What a broker asks of the world: what the floors below may ask, a finer clock, and an end."""

    watch: StallWatch

    @property
    def monotonic_ns(self) -> Callable[[], int]:
        """The clock of intervals. It is read several times a request, so what is handed out is the clock itself."""

    def close(self) -> None:
        """Wait for what the threads still do. Their results find no one any more."""

    async def stop(self) -> None:
        """`close`, while the loop goes on."""


class AsyncRuntime(RealWorld):
    """A `BrokerRuntime` on an asyncio loop (uvloop where the broker runs)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: int = 4) -> None:
        self._loop = loop
        self.watch = StallWatch(loop.call_soon)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ottla-blocking")
        # Threads are made when there is work for them, which log.cleaner.threads limits.
        self._long_pool = ThreadPoolExecutor(_LONG_WORKERS, thread_name_prefix="ottla-long")
        self._lanes: list[ThreadPoolExecutor] = []

    @property
    def monotonic_ns(self) -> Callable[[], int]:
        return time.monotonic_ns

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        self._deliver(self._pool.submit(work), done)

    def run_long(self, work: Callable[[], T], done: Done[T]) -> None:
        self._deliver(self._long_pool.submit(work), done)

    def _deliver(self, future: Future[T], done: Done[T]) -> None:
        """Bring a thread's result to the loop; a loop that is gone has nobody left to tell."""

        # Nothing here leads from the future back to itself: what was found may be large, and goes when it was used.
        def finished(future: Future[T]) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._found, future, done)

        future.add_done_callback(finished)

    def _found(self, future: Future[T], done: Done[T]) -> None:
        error = future.exception()
        self.watch.enter()
        try:
            done(None if error else future.result(), error)
        finally:
            self.watch.leave(done)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(self.watch.run, callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(max(0.0, delay_ms) / 1000, self.watch.run, callback)

    def lane(self, name: str) -> Lane:
        pool = ThreadPoolExecutor(1, thread_name_prefix=f"ottla-{name}")
        self._lanes.append(pool)
        return _ThreadLane(self, pool)

    def close(self) -> None:
        for pool in (*self._lanes, self._pool, self._long_pool):
            pool.shutdown(wait=True)

    async def stop(self) -> None:
        await self._loop.run_in_executor(None, self.close)


class _ThreadLane:
    """A pool of one thread keeps the order of what it is given."""

    def __init__(self, runtime: AsyncRuntime, pool: ThreadPoolExecutor) -> None:
        self._runtime = runtime
        self._pool = pool

    def submit(self, work: Callable[[], T], done: Done[T]) -> None:
        self._runtime._deliver(self._pool.submit(work), done)
