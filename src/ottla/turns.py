"""A few milliseconds of work in a turn of the loop, and the rest in the next turns: everybody else is served between.

Whoever has more to do than fits into one turn keeps it in a queue of its own and gives `Turns` a generator function
that works it off: each `yield` is the end of a piece, at which the turn may end. When the function returns, nothing is
left for this turn; who brings more calls `wake`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.runtime import LoopRuntime


class Turns:
    """The turns of one queue. Each takes at least one piece; with `turn_ms` of 0, exactly one."""

    def __init__(self, runtime: LoopRuntime, pieces: Callable[[], Iterator[None]], turn_ms: int) -> None:
        self._runtime = runtime
        self._pieces = pieces
        self._turn_ms = turn_ms
        self.is_coming = False

    def wake(self) -> None:
        """There is something to do: in the next turn of the loop."""
        if not self.is_coming:
            self.is_coming = True
            self._runtime.call_soon(self.take)

    def take(self) -> None:
        """One turn, now. A piece that fails ends it, and the pieces after that one have the next."""
        self.is_coming = False
        until_ms = self._runtime.monotonic_ms() + self._turn_ms
        has_more = True
        try:
            for _ in self._pieces():
                if self._runtime.monotonic_ms() >= until_ms:
                    break
            else:
                has_more = False
        finally:
            if has_more:
                self.wake()
