"""When Python looks for garbage in cycles: a full collection visits every object, and nobody is served meanwhile.

The interpreter begins one when the number of objects has grown by a quarter. With thirty thousand requests that wait,
each takes half a second, and clients decide how often. So the broker does it itself: while it is idle, and so seldom
that it costs a thousandth of the time. Young objects are collected as ever, which takes a millisecond at most.
"""

from __future__ import annotations

import gc
import time

from ottla.metrics import TurnTimes

_NEVER = 1 << 30
_MIN_GROWTH = 20  # collections of young objects since the last full one: before that there can be little
_IDLE_SHARE = 0.05  # of the time between two looks that an idle loop works
_PAUSE = 1000  # times as long as a collection took, before the next
_MIN_PAUSE_NS = 60 * 10**9


class Garbage:
    """Of this process. Nothing changes before `take_over`."""

    def __init__(self, processor: TurnTimes) -> None:
        self._processor = processor
        self._is_ours = False
        self._thresholds = gc.get_threshold()
        self._due_ns = 0
        self._looked_ns = 0
        self._worked_ns = 0

    def take_over(self) -> None:
        """What the start has made stays for ever; full collections are ours from now on."""
        gc.collect()
        gc.freeze()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*self._thresholds[:2], _NEVER)
        self._due_ns = time.monotonic_ns() + _MIN_PAUSE_NS
        self._is_ours = True

    def give_back(self) -> None:
        """Leave it to the interpreter again."""
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)
        self._is_ours = False

    def look(self) -> None:
        """Called now and then on the loop: collect, if it is time and nobody is waiting."""
        now_ns = time.monotonic_ns()
        worked_ns, took_ns = self._processor.total_ns - self._worked_ns, now_ns - self._looked_ns
        self._worked_ns, self._looked_ns = self._processor.total_ns, now_ns
        is_idle = worked_ns < took_ns * _IDLE_SHARE
        if not self._is_ours or not is_idle or now_ns < self._due_ns or gc.get_count()[2] < _MIN_GROWTH:
            return
        gc.collect()
        took_ns = time.monotonic_ns() - now_ns
        self._due_ns = now_ns + max(_MIN_PAUSE_NS, _PAUSE * took_ns)
