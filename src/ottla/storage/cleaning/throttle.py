"""Keeps a cleaner's reads and writes below a rate: log.cleaner.io.max.bytes.per.second."""

from __future__ import annotations

from collections.abc import Callable

from ottla.runtime import Runtime

_NAP_MS = 100  # between two looks whether there is still a reason to wait


class Throttle:
    """Of one cleaning, on its thread: it waits until what it has read or written fits into the rate."""

    def __init__(self, runtime: Runtime, bytes_per_second: float, should_stop: Callable[[], bool]) -> None:
        self._runtime = runtime
        self._bytes_per_second = bytes_per_second
        self._should_stop = should_stop
        self._free_at_ms = 0.0  # when all that was read and written so far has had its time

    def took(self, size: int) -> None:
        """`size` bytes were read or written; returns when that is not too much any more, or on a call to stop."""
        runtime = self._runtime
        self._free_at_ms = (
            max(self._free_at_ms, runtime.monotonic_ms()) + size * 1000 / self._bytes_per_second
        )
        while (left_ms := self._free_at_ms - runtime.monotonic_ms()) >= 1 and not self._should_stop():
            runtime.sleep_ms(min(left_ms, _NAP_MS))
