"""Where requests wait that cannot be answered yet: until something they watch changes, or their time is over.

A waiter is tried before it is watched, and each time one of its keys is checked. Not once more after it is watched, as
in Kafka: here nothing can happen in between, all this is on one thread. Completed waiters stay in the lists of their
other keys until those are checked, or until there are more of them than the purge interval.

Thousands may watch one key. They are looked at a few milliseconds at a time, and in between the loop serves others;
those that are left are looked at in the order in which they began to wait.

How much may wait has a limit. Whoever comes then takes the place of those who have waited longest: for them it is as if
their time were over.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from ottla.runtime import LoopRuntime, Timer
from ottla.timers import Timers
from ottla.turns import Turns

K = TypeVar("K", bound=Hashable)

_AT_ONCE = 64  # waiters that are looked at in any case, before the clock is
_TURN_MS = 2
WAITER_WEIGHT = 4  # of a waiter without its keys; each of them weighs 1

_logger = logging.getLogger(__name__)


class Waiter(Generic[K]):
    """Something that waits. Exactly one of `complete` and `expire` does its work, and that once."""

    __slots__ = ("_answer", "is_done", "timer", "watched", "weight")

    def __init__(self, answer: Callable[[], None] | None = None) -> None:
        self._answer = answer
        self.is_done = False
        self.watched = 0  # lists that it is in
        self.weight = 0
        self.timer: Timer | None = None

    def can_complete(self, key: K | None) -> bool:
        """Whether the wait is over. `key` is what changed; None asks about everything."""
        raise NotImplementedError

    def complete(self) -> None:
        """What it waited for has come."""
        # Lists of the purgatory may keep this object for a while, but nothing that hangs on its answer.
        answer, self._answer = self._answer, None
        if answer is not None:
            answer()

    def expire(self) -> None:
        """Its time is over."""
        self.complete()


class Purgatory(Generic[K]):
    """Waiters by the keys that they watch."""

    def __init__(self, runtime: LoopRuntime, purge_interval: int, max_weight: int = sys.maxsize) -> None:
        self._purge_interval = purge_interval
        self._max_weight = max_weight
        self._weight = 0  # of all that wait
        self._oldest: OrderedDict[Waiter[K], None] = OrderedDict()  # in the order in which they came
        self.watchers: dict[K, list[Waiter[K]]] = {}  # to be looked at from outside, changed only here
        self._timers = Timers(runtime)
        self._stale = 0  # places in the lists that completed waiters still hold
        # To be looked at, the last of a list first; without a key, their time is over.
        self._late: deque[tuple[K | None, list[Waiter[K]]]] = deque()
        self._late_count = 0
        self._turns = Turns(runtime, self._look_at_late, _TURN_MS)

    @property
    def size(self) -> int:
        """Waiters in the lists, each counted once for every key: Kafka's PurgatorySize."""
        # A list first: `/metrics` asks on a thread of its own.
        return sum(map(len, list(self.watchers.values()))) + self._late_count

    @property
    def delayed(self) -> int:
        """Waiters whose time is not over: Kafka's NumDelayedOperations."""
        return len(self._timers)

    def try_complete_else_watch(self, waiter: Waiter[K], keys: Iterable[K], timeout_ms: int) -> bool:
        """Complete the waiter if it can be; else keep it for at most `timeout_ms`. True if it is done."""
        if waiter.can_complete(None):
            self._end(waiter, waiter.complete)
            return True
        self.watch(waiter, keys, timeout_ms)
        return False

    def watch(self, waiter: Waiter[K], keys: Iterable[K], timeout_ms: int) -> None:
        """Keep a waiter that is known to be incomplete."""
        self._enter(waiter, keys)
        waiter.timer = self._timers.call_later(timeout_ms, partial(self._expire, waiter))
        waiter.weight += WAITER_WEIGHT
        self._weight += WAITER_WEIGHT
        self._oldest[waiter] = None
        if self._weight > self._max_weight:
            self._crowd_out()

    def watch_more(self, waiter: Waiter[K], keys: Sequence[K]) -> None:
        """Let a waiter watch these too, if it is still here. Something may have happened to them already."""
        if waiter.is_done:
            return
        self._enter(waiter, keys)
        if any(waiter.can_complete(key) for key in keys):
            self._end(waiter, waiter.complete)
        elif self._weight > self._max_weight:
            self._crowd_out()

    def _enter(self, waiter: Waiter[K], keys: Iterable[K]) -> None:
        watchers, watched = self.watchers, waiter.watched
        for key in keys:
            watching = watchers.get(key)
            if watching is None:
                watchers[key] = [waiter]
            else:
                watching.append(waiter)
            waiter.watched += 1
        waiter.weight += waiter.watched - watched
        self._weight += waiter.watched - watched

    def _crowd_out(self) -> None:
        """Too many wait: the time of the oldest is over. They are told in the next turns of the loop."""
        crowded_out = []
        while self._weight > self._max_weight and self._oldest:
            waiter, _ = self._oldest.popitem(last=False)
            self._weight -= waiter.weight
            waiter.weight = 0
            crowded_out.append(waiter)
        self._leave(None, crowded_out)
        self._look(0)

    def check(self, key: K) -> int:
        """Something about `key` changed: how many waiters that completed so far."""
        watching = self.watchers.get(key)
        if watching is None:
            return 0
        # A completion may enter new waiters for the same key: they find a list of their own.
        del self.watchers[key]
        if len(watching) > _AT_ONCE or self._late:
            self._leave(key, watching)
            return self._look(_AT_ONCE)
        completed, left = 0, []
        for waiter in watching:
            if self._try(key, waiter):
                completed += 1
            elif not waiter.is_done:
                left.append(waiter)
        if left:
            self.watchers[key] = left + self.watchers.get(key, [])
        return completed

    def _try(self, key: K, waiter: Waiter[K]) -> bool:
        """Complete a waiter that was taken out of the list of `key`, if it can be."""
        if waiter.is_done:
            self._stale -= 1
            return False
        if not waiter.can_complete(key):
            return False
        waiter.watched -= 1
        self._end(waiter, waiter.complete)
        return True

    def _look(self, count: int) -> int:
        """Look at the first `count` of those that are late, and leave the others to the next turns of the loop."""
        late, completed = self._late, 0
        for _ in range(min(count, self._late_count)):
            if not late:  # whoever was answered came back here
                break
            key, waiters = late[0]
            waiter = waiters.pop()
            self._late_count -= 1
            if not waiters:
                late.popleft()
            if key is None:
                self._expire(waiter)
            elif self._try(key, waiter):
                completed += 1
            elif not waiter.is_done:
                self.watchers.setdefault(key, []).append(waiter)
        if late:
            self._turns.wake()
        return completed

    def _leave(self, key: K | None, waiters: list[Waiter[K]]) -> None:
        """They are to be looked at later."""
        if waiters:
            waiters.reverse()
            self._late.append((key, waiters))
            self._late_count += len(waiters)

    def _look_at_late(self) -> Iterator[None]:
        while self._late:
            self._look(_AT_ONCE)
            yield

    def _expire(self, waiter: Waiter[K]) -> None:
        if not waiter.is_done:
            self._end(waiter, waiter.expire)

    def cancel(self, waiter: Waiter[K]) -> None:
        """Nobody wants its answer any more: neither `complete` nor `expire` will be called."""
        if not waiter.is_done:
            self._finish(waiter)

    def _end(self, waiter: Waiter[K], answer: Callable[[], None]) -> None:
        self._finish(waiter)
        try:
            answer()
        except Exception:
            # Whoever moved things on is not to blame, and the other waiters still want to know.
            _logger.exception("a waiting request could not be answered")

    def _finish(self, waiter: Waiter[K]) -> None:
        waiter.is_done = True
        if waiter.timer is not None:
            waiter.timer.cancel()
            waiter.timer = None
        self._stale += waiter.watched
        waiter.watched = 0
        if waiter.weight:
            self._weight -= waiter.weight
            waiter.weight = 0
            self._oldest.pop(waiter, None)
        if self._stale - self._late_count > self._purge_interval:
            self._purge()

    def _purge(self) -> None:
        for key, watching in list(self.watchers.items()):
            left = [waiter for waiter in watching if not waiter.is_done]
            self._stale -= len(watching) - len(left)
            if left:
                self.watchers[key] = left
            else:
                del self.watchers[key]
