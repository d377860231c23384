"""Why a connection is not read from: the reasons, who sets each and who clears it.

A session reads while it has no reason to pause. Each reason is a bit, so that "none" is one comparison; any number of
them may hold at once, and reading goes on when the last one is cleared. Setting a reason twice is setting it once, and
so is clearing it. What has come into memory before a pause is handled before the socket is read again.

WRITING, MEMORY, ENTRIES and ANSWERS bound what one client can make the broker hold; WORK and OTHERS bound what it can
make it do while others wait; THROTTLE is what a client is told to observe anyway (KIP-219).
"""

from __future__ import annotations

from typing import Final, NamedTuple

WRITING: Final = 1
ANSWERS: Final = 2
MEMORY: Final = 4
ENTRIES: Final = 8
WORK: Final = 16
OTHERS: Final = 32
THROTTLE: Final = 64


class Pause(NamedTuple):
    """Methods of Session that set and clear a reason."""

    why: str
    set_by: frozenset[str]
    cleared_by: frozenset[str]


def _pause(why: str, set_by: str, cleared_by: str) -> Pause:
    return Pause(why, frozenset(set_by.split()), frozenset(cleared_by.split()))


TABLE: Final[dict[int, Pause]] = {
    WRITING: _pause("the client does not take its answers", "pause_writing", "resume_writing"),
    ANSWERS: _pause("too many of its requests wait for their answers", "_take_frames", "_release_answers"),
    MEMORY: _pause("the memory for requests is used up", "_take_frames", "_fed"),
    ENTRIES: _pause(
        "a request with very many entries is under way, or waits until it may be",
        "_receive_large",
        "_receive_large _encoded",
    ),
    WORK: _pause("the answer to the last request takes long", "_receive _encode_slowly", "_encoded"),
    OTHERS: _pause("it has had its share of this turn of the loop", "_leave_to_others", "take_turn"),
    THROTTLE: _pause("it was told to slow down", "_mute", "_mute"),
}
