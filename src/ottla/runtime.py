"""Time, chance and threads, behind one seam.

Storage and everything else below the server asks a `Runtime` for the clock, for random numbers and for work that
blocks. One owner (an event loop, or a plain program) holds all state; blocking work runs elsewhere and its result
comes back to the owner. A simulated runtime makes whole histories repeatable.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Done = Callable[[T | None, BaseException | None], None]


class Runtime(Protocol):
    """What the floors below the server may ask of the world."""

    def now_ms(self) -> int:
        """Wall-clock time, as timestamps in records have it."""

    def monotonic_ms(self) -> int:
        """Time that never goes back, for intervals."""

    def sleep_ms(self, ms: float) -> None:
        """Wait that long; for blocking work, never on the owner's thread."""

    def randrange(self, stop: int) -> int:
        """A number in [0, stop)."""

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        """Run `work` where it may block; call `done(result, error)` later, on the owner's thread."""

    def run_long(self, work: Callable[[], T], done: Done[T]) -> None:
        """As `run_blocking`, for work that takes long or sleeps: it keeps no thread from the rest."""

    def map_blocking(
        self,
        work: Callable[[T], R],
        items: Iterable[T],
        workers: int,
        on_done: Callable[[T], None] | None = None,
    ) -> list[tuple[T, R | None, BaseException | None]]:
        """Run `work` for every item on up to `workers` threads and wait; errors are returned, not raised."""


class Timer(Protocol):
    """Something that will be called later, unless it is cancelled."""

    def cancel(self) -> None: ...


class Lane(Protocol):
    """One thread that does its work in the order it was given."""

    def submit(self, work: Callable[[], T], done: Done[T]) -> None:
        """Run `work` on the lane's thread, after what was submitted before; then `done` on the owner's."""


class LoopRuntime(Runtime, Protocol):
    """What the floors between storage and server may ask on top: timers, turns of the loop, threads of their own."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call on the owner's thread after what is going on now."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call on the owner's thread when `delay_ms` have passed."""

    def lane(self, name: str) -> Lane:
        """A thread of its own, in which work is done in order."""


class RealWorld:
    """Clock, chance and threads as the operating system has them, for both real runtimes."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_ms(self, ms: float) -> None:
        time.sleep(ms / 1000)

    def randrange(self, stop: int) -> int:
        return random.randrange(stop)

    def map_blocking(
        self,
        work: Callable[[T], R],
        items: Iterable[T],
        workers: int,
        on_done: Callable[[T], None] | None = None,
    ) -> list[tuple[T, R | None, BaseException | None]]:
        if workers <= 1:
            return map_in_turn(work, items, on_done)
        results: list[tuple[T, R | None, BaseException | None]] = []
        with ThreadPoolExecutor(workers, thread_name_prefix="ottla-map") as pool:
            futures = {pool.submit(work, item): item for item in items}
            for future in as_completed(futures):
                error = future.exception()
                results.append((futures[future], None if error else future.result(), error))
                if on_done:
                    on_done(futures[future])
        return results


def map_in_turn(
    work: Callable[[T], R], items: Iterable[T], on_done: Callable[[T], None] | None = None
) -> list[tuple[T, R | None, BaseException | None]]:
    """`map_blocking` on the thread that calls it."""
    results: list[tuple[T, R | None, BaseException | None]] = []
    for item in items:
        results.append((item, *attempt(partial(work, item))))
        if on_done:
            on_done(item)
    return results


def attempt(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What `work` gives, or what it raises: both are for whoever asked for it."""
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's result
        return None, error


class SystemRuntime(RealWorld):
    """The real world. `poll` runs, on the owner's thread, what finished blocking work wants told."""

    def __init__(self, workers: int = 4) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ottla-blocking")
        self._completed: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._outstanding = 0
        self._lock = threading.Lock()

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        with self._lock:
            self._outstanding += 1
        future: Future[T] = self._pool.submit(work)
        future.add_done_callback(lambda f: self._completed.put(lambda: self._finish(f, done)))

    def run_long(self, work: Callable[[], T], done: Done[T]) -> None:
        self.run_blocking(work, done)

    def _finish(self, future: Future[T], done: Done[T]) -> None:
        with self._lock:
            self._outstanding -= 1
        error = future.exception()
        done(None if error else future.result(), error)

    def poll(self, wait_s: float = 0.0) -> bool:
        """Deliver finished work; waits up to `wait_s` for the first. True if anything was delivered."""
        delivered = False
        while True:
            try:
                callback = self._completed.get(timeout=wait_s) if wait_s > 0 else self._completed.get_nowait()
            except Empty:
                return delivered
            callback()
            delivered, wait_s = True, 0.0

    def drain(self) -> None:
        """Deliver until no blocking work is under way."""
        while self._outstanding:
            self.poll(0.1)

    def close(self) -> None:
        self.drain()
        self._pool.shutdown(wait=True)
