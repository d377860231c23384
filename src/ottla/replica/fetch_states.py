"""The states of a fetch under way.

A fetch reads all its partitions, in a first pass. If that was too little it waits, and when it is woken it reads all
of them again, in a second pass, and answers with what that has found, be it much or little.

READING is the first pass as long as it has not left the loop's hands: what was read is true at this very moment. So a
fetch that begins to wait from here need not look once more. A pass stops where a partition cannot be read at once: its
pages are not in memory and a thread reads them first, its log is lent to a lane, or very many partitions were read and
the loop has others to serve. That is AWAY. When it goes on it is RESUMED, no longer READING: partitions that were read
before may have grown since, so whoever begins to wait from here is tried first.

WAITING is in the purgatory, or, with very many partitions, on the way into it. READING_AGAIN and AWAY_AGAIN are the
second pass; it ends with the answer.

A client goes between two turns of the loop, so never while a pass reads. Then nobody wants the answer: what is still
under way (a thread, a lane, another turn of the loop) comes back to a fetch that is CANCELLED, and nothing follows.
What is ANSWERED stays so.

    READING -----------------> ANSWERED     enough, an error to tell, or no time to wait
    READING --> AWAY --> RESUMED            a thread, a lane or a later turn, as often as needed
    READING, RESUMED --> WAITING            too little
    WAITING --> READING_AGAIN --> ANSWERED  data came, or the time is over
    WAITING -----------------> ANSWERED     it could not be put into the purgatory
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class FetchState(IntEnum):
    """Where a fetch is."""

    READING = 0
    AWAY = 1
    RESUMED = 2
    WAITING = 3
    READING_AGAIN = 4
    AWAY_AGAIN = 5
    ANSWERED = 6
    CANCELLED = 7


class FetchEvent(IntEnum):
    """What happens to it."""

    LEAVE = 0  # the next partition is read elsewhere, or in another turn
    COME_BACK = 1  # from there
    WAIT = 2  # too little was found
    WAKE = 3  # there is more, or the time is over
    ANSWER = 4
    CANCEL = 5  # the client is gone


# Bound once: a look into the class of an enum costs more than the step itself.
READING: Final = FetchState.READING
AWAY: Final = FetchState.AWAY
RESUMED: Final = FetchState.RESUMED
WAITING: Final = FetchState.WAITING
READING_AGAIN: Final = FetchState.READING_AGAIN
AWAY_AGAIN: Final = FetchState.AWAY_AGAIN
ANSWERED: Final = FetchState.ANSWERED
CANCELLED: Final = FetchState.CANCELLED

LEAVE: Final = FetchEvent.LEAVE
COME_BACK: Final = FetchEvent.COME_BACK
WAIT: Final = FetchEvent.WAIT
WAKE: Final = FetchEvent.WAKE
ANSWER: Final = FetchEvent.ANSWER
CANCEL: Final = FetchEvent.CANCEL

TABLE: Final[dict[FetchState, dict[FetchEvent, FetchState]]] = {
    READING: {LEAVE: AWAY, WAIT: WAITING, ANSWER: ANSWERED},
    AWAY: {COME_BACK: RESUMED, CANCEL: CANCELLED},
    RESUMED: {LEAVE: AWAY, WAIT: WAITING, ANSWER: ANSWERED},
    WAITING: {WAKE: READING_AGAIN, ANSWER: ANSWERED, CANCEL: CANCELLED},
    READING_AGAIN: {LEAVE: AWAY_AGAIN, ANSWER: ANSWERED},
    AWAY_AGAIN: {COME_BACK: READING_AGAIN, CANCEL: CANCELLED},
    ANSWERED: {CANCEL: ANSWERED},
    CANCELLED: {COME_BACK: CANCELLED, CANCEL: CANCELLED},
}
