"""Long work on the loop, done a little in each turn, so that everybody else is served in between.

Work is a generator: each of its steps takes a millisecond at most, and what it returns is its result. All of it
together gets a few milliseconds of a turn, one step each in turn. Only a few are begun at a time, the others wait: what
is begun holds memory.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from ottla.runtime import LoopRuntime
from ottla.stall_watch import StallWatch
from ottla.turns import Turns

Steps = Generator[None, None, Any]
Done = Callable[[Any], None]

_TURN_MS = 3
_AT_ONCE = 4

_logger = logging.getLogger(__name__)


class _Work(NamedTuple):
    steps: Steps
    done: Done
    failed: Callable[[], None]
    cause: object


class Slices:
    """The long work of one loop."""

    def __init__(self, runtime: LoopRuntime, watch: StallWatch) -> None:
        self._watch = watch
        self._begun: deque[_Work] = deque()
        self._waiting: deque[_Work] = deque()
        self._turns = Turns(runtime, self._take_steps, _TURN_MS)

    def __len__(self) -> int:
        return len(self._begun) + len(self._waiting)

    def add(self, steps: Steps, done: Done, failed: Callable[[], None], cause: object) -> None:
        """Do all steps, in turns to come, and call `done` with what they return; `failed` if one raises."""
        self._waiting.append(_Work(steps, done, failed, cause))
        self._turns.wake()

    def call(self, callback: Callable[[], None], cause: object) -> None:
        """Do something short when its turn comes."""
        self.add(_once(callback), _nothing, _nobody, cause)

    def _take_steps(self) -> Iterator[None]:
        begun, waiting = self._begun, self._waiting
        while begun or waiting:
            while waiting and len(begun) < _AT_ONCE:
                begun.append(waiting.popleft())
            self._step(begun.popleft())
            yield

    def _step(self, work: _Work) -> None:
        began_ns = self._watch.now_ns()
        try:
            try:
                next(work.steps)
            except StopIteration as end:
                work.done(end.value)
            else:
                self._begun.append(work)
        except Exception:
            _logger.exception("%s failed", work.cause)
            work.failed()
        self._watch.note_since(work.cause, began_ns)


def _once(callback: Callable[[], None]) -> Steps:
    callback()
    yield from ()


def _nothing(_: object) -> None: ...


def _nobody() -> None: ...
