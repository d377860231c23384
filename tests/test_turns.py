"""Work that is done in turns of the loop: a few milliseconds of it in each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from ottla.testing.runtime import SimulatedRuntime
from ottla.turns import Turns


class Queue:
    """Numbers, each of which takes a millisecond."""

    def __init__(self, turn_ms: int) -> None:
        self.runtime = SimulatedRuntime(queued=True)
        self.left: deque[int] = deque()
        self.done: list[int] = []
        self.turns = Turns(self.runtime, self._pieces, turn_ms)

    def _pieces(self) -> Iterator[None]:
        while self.left:
            number = self.left.popleft()
            if number < 0:
                raise ValueError(number)
            self.done.append(number)
            self.runtime.sleep_ms(1)
            yield


@pytest.mark.parametrize(("turn_ms", "shares"), [(0, [1] * 7), (3, [3, 3, 1])])
def test_a_turn_ends_when_its_time_is_over(turn_ms: int, shares: list[int]) -> None:
    queue = Queue(turn_ms)
    queue.left.extend(range(7))
    queue.turns.wake()
    queue.turns.wake()
    counts = []
    while queue.left:
        before = len(queue.done)
        assert queue.runtime.run_one()
        counts.append(len(queue.done) - before)
    assert (counts, queue.done) == (shares, list(range(7)))


def test_nothing_is_called_while_there_is_nothing_to_do() -> None:
    queue = Queue(3)
    queue.left.append(1)
    queue.turns.wake()
    queue.runtime.run_pending()
    assert not queue.turns.is_coming
    assert not queue.runtime.run_one()
    queue.left.append(2)
    queue.turns.wake()
    queue.runtime.run_pending()
    assert queue.done == [1, 2]


def test_a_piece_that_fails_does_not_keep_the_others() -> None:
    queue = Queue(3)
    queue.left.extend([-1, 2])
    queue.turns.wake()
    with pytest.raises(ValueError, match="-1"):
        queue.runtime.run_pending()
    queue.runtime.run_pending()
    assert queue.done == [2]
