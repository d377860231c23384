"""Connections that have more to do than fits into one turn of the loop: the others have theirs before the next.

A turn of the loop takes as many of them as a few milliseconds allow, and at least one.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from ottla.runtime import LoopRuntime

TURN_MS: Final = 4


class Waiting(Protocol):
    """A connection, as seen from here."""

    def take_turn(self) -> None: ...


class Turns:
    """Of one listener."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._waiting: deque[Waiting] = deque()

    def append(self, connection: Waiting) -> None:
        """It has more to do."""
        if not self._waiting:
            self._runtime.call_soon(self._take)
        self._waiting.append(connection)

    def _take(self) -> None:
        waiting, until_ms = self._waiting, self._runtime.monotonic_ms() + TURN_MS
        try:
            for _ in range(len(waiting)):  # not those that come back for more
                # It stays in its place meanwhile, so that whoever comes back does not ask for another call.
                try:
                    waiting[0].take_turn()
                finally:
                    waiting.popleft()
                if self._runtime.monotonic_ms() >= until_ms:
                    break
        finally:
            if waiting:
                self._runtime.call_soon(self._take)
