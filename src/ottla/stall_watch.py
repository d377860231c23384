"""Measures the turns of the event loop, and says in the log what made one long.

A turn is everything that the loop does between two looks at its sockets: while it lasts, every other client waits.
Its processor time is what a request cost, however busy the machine is; its duration is what the others saw.

The clock of processor time is a system call, so it is not read for each request. What runs on the loop says when it
begins and ends (`enter`, `leave`), by a clock that costs nothing. Only when a millisecond has passed since the last
reading there is another, and a turn that lasts longer than that is closed by a callback, which the loop runs first in
its next turn. Shorter turns are counted a millisecond's worth at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ottla.metrics import TurnTimes

RESOLUTION_NS: Final = 1_000_000
LONG_TURN_NS: Final = 5_000_000
STALL_NS: Final = 50_000_000  # of processor time: then the log says whose request it was
LONG_WAIT_NS: Final = 1_000_000_000  # of anything: the disk, another thread, another process
QUIET_NS: Final = 1_000_000_000  # at most one line in that time

log = logging.getLogger(__name__)


class StallWatch:
    """Of one loop. Without `call_soon` each unit of work counts as a turn."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        processor_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._call_soon = call_soon
        self.now_ns = clock_ns
        self._processor_ns = processor_ns
        self.duration = TurnTimes()
        self.processor = TurnTimes()
        self._began_ns = 0  # when the turn began, or the last reading was
        self._began_cpu_ns = 0
        self._is_closing = False  # the callback that ends the turn is on its way
        self._unit_began_ns = 0
        self._noted_ns = 0  # of that, what is known to have been done for somebody in particular
        self._longest_unit_ns = 0
        self._cause: object = None  # of the longest piece of work in this turn
        self.answered: object = None  # the last request that was answered by work begun for something else
        self._told_ns = -QUIET_NS
        self._untold = 0

    # -- what runs on the loop calls these

    def enter(self) -> None:
        """A piece of work begins."""
        self._unit_began_ns = now_ns = self.now_ns()
        self._noted_ns = 0
        if not self._is_closing and now_ns - self._began_ns > RESOLUTION_NS:
            self._read_clocks(now_ns)

    def leave(self, cause: object) -> None:
        """It has ended. `cause` is what it was done for: a request, a connection, or the function that did it."""
        now_ns = self.now_ns()
        took_ns = now_ns - self._unit_began_ns - self._noted_ns
        if took_ns > RESOLUTION_NS:
            self.note(cause, took_ns)
        if not self._is_closing and now_ns - self._began_ns > RESOLUTION_NS:
            self._is_closing = True
            if self._call_soon is not None:
                self._call_soon(self.end_turn)
            else:
                self.end_turn()

    def is_long(self) -> bool:
        """Whether this turn has lasted so long that what can wait should be left to the next."""
        return self._is_closing and self.now_ns() - self._began_ns > LONG_TURN_NS

    def note(self, cause: object, took_ns: int) -> None:
        """A part of the work that is going on was done for `cause`, and took so long."""
        self._noted_ns += took_ns
        if took_ns > self._longest_unit_ns:
            self._longest_unit_ns = took_ns
            self._cause = cause

    def note_since(self, cause: object, began_ns: int) -> None:
        """The same of what began at a time that `now_ns` gave."""
        took_ns = self.now_ns() - began_ns
        if took_ns > RESOLUTION_NS:
            self.note(cause, took_ns)

    def run(self, callback: Callable[[], None]) -> None:
        """Do a piece of work that has a name."""
        self.enter()
        try:
            callback()
        finally:
            self.leave(callback)

    def close(self) -> None:
        """Count what was done so far, however short it was."""
        if not self._is_closing:
            self._read_clocks(self.now_ns())

    # -- the turn

    def end_turn(self) -> None:
        """The loop has looked at its sockets since the work began that was measured."""
        now_ns = self.now_ns()
        self._is_closing = False
        self.duration.record(now_ns - self._began_ns)
        self._read_clocks(now_ns)

    def _read_clocks(self, now_ns: int) -> None:
        cpu_ns = self._processor_ns()
        used_ns = cpu_ns - self._began_cpu_ns
        if self._began_cpu_ns:
            self.processor.record(used_ns)
            if used_ns >= STALL_NS or self._longest_unit_ns >= LONG_WAIT_NS:
                self._tell(now_ns, used_ns)
        self._began_ns = now_ns
        self._began_cpu_ns = cpu_ns
        self._longest_unit_ns = 0
        self._cause = self.answered = None

    def _tell(self, now_ns: int, used_ns: int) -> None:
        if now_ns - self._told_ns < QUIET_NS:
            self._untold += 1
            return
        before = f" ({self._untold} more since the last time)" if self._untold else ""
        last = f"; answered last: {self.answered}" if self.answered is not None else ""
        log.warning(
            "the loop was kept busy for %.0f ms of processor time%s, longest (%.0f ms) by %s%s",
            used_ns / 1e6, before, self._longest_unit_ns / 1e6, _name(self._cause), last,
        )  # fmt: skip
        self._told_ns, self._untold = now_ns, 0


def _name(cause: object) -> str:
    if cause is None:
        return "work that is not watched"
    if not callable(cause):
        return str(cause)
    work: object = getattr(cause, "func", cause)  # of a partial
    module = getattr(work, "__module__", None) or type(work).__module__
    return f"{module}.{getattr(work, '__qualname__', type(work).__qualname__)}"
