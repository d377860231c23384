"""Connections that have more to do than fits into one turn of the loop: the others have theirs before the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

from ottla.runtime import LoopRuntime
from ottla.turns import Turns

TURN_MS: Final = 4


class Busy(Protocol):
    """A connection, as seen from here."""

    def take_turn(self) -> None: ...


class SessionTurns:
    """Of one listener."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._waiting: deque[Busy] = deque()
        self._turns = Turns(runtime, self._serve, TURN_MS)

    def append(self, session: Busy) -> None:
        """It has more to do."""
        self._waiting.append(session)
        self._turns.wake()

    def _serve(self) -> Iterator[None]:
        for _ in range(len(self._waiting)):  # sessions that come back for more have the next turn
            self._waiting.popleft().take_turn()
            yield
