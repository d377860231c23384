"""The checker of group histories: it finds each kind of fault, and says nothing of what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.group_history import (
    BEAT,
    COMMIT,
    FETCH,
    JOIN,
    NOTHING,
    STRANGE,
    SYNC,
    TRYING,
    Event,
    check,
    read,
)

UNKNOWN_MEMBER = 25


def event(
    kind: str,
    begin: int,
    end: int,
    generation: int = 1,
    places: dict[int, int] | None = None,
    member: str = "a",
    instance: str | None = None,
    code: int = 0,
) -> Event:
    return Event("g", member, instance, kind, generation, begin, end, code, tuple((places or {}).items()))


def commit(
    begin: int, end: int, offset: int, generation: int = 1, member: str = "a", code: int = 0
) -> list[Event]:
    places = {0: offset}
    return [
        event(TRYING, begin, begin, generation, places, member),
        event(COMMIT, begin, end, generation, places, member, code=code),
    ]


TAKES_OVER = [
    event(SYNC, 0, 1, 1, {0: 0, 1: 0}),
    *commit(2, 3, 1),
    event(SYNC, 10, 11, 2, {0: 0}, "b"),
    event(SYNC, 10, 12, 2, {1: 0}, "a"),
    event(FETCH, 13, 14, 2, {0: 1}, "b"),
    *commit(15, 16, 2, 2, "b"),
]

RIGHT = {
    "nothing": [],
    "one takes over": TAKES_OVER,
    "the earlier generation is refused": [*TAKES_OVER, event(BEAT, 20, 21, 1, code=UNKNOWN_MEMBER)],
    "an answer that took long": [*TAKES_OVER, event(BEAT, 5, 30, 1)],
    "a commit that may have come before": [*TAKES_OVER, *commit(8, 30, 9, 1, code=0)][:-1],
    "a commit without an answer is read": [
        event(TRYING, 0, 0, 1, {0: 5}), event(FETCH, 3, 4, 2, {0: 5}, "b"),
    ],
    "a commit without an answer is not read": [
        event(TRYING, 0, 0, 1, {0: 5}), event(FETCH, 3, 4, 2, {0: NOTHING}, "b"),
    ],
    "nothing is read before anything is committed": [event(FETCH, 0, 1, 1, {0: NOTHING})],
    "a fetch while a commit is on its way": [*commit(0, 10, 1), event(FETCH, 5, 6, 1, {0: NOTHING})],
    "a generation that nobody heard of begins anew": [
        event(SYNC, 0, 1, 1, {0: 0}), event(JOIN, 2, 3, 2), event(BEAT, 4, 5, 2), event(BEAT, 6, 7, 1),
    ],
    "a static member starts again": [
        event(SYNC, 0, 1, 1, {0: 0}, "one-1", "one"),
        event(SYNC, 5, 6, 1, {0: 0}, "one-2", "one"),
        event(BEAT, 7, 8, 1, {}, "one-1", "one", code=82),
    ],
}  # fmt: skip

WRONG = {
    "two have a partition": ("owner", [event(SYNC, 0, 1, 1, {0: 0}), event(SYNC, 0, 1, 1, {0: 0}, "b")]),
    "two instances have a partition": (
        "owner",
        [event(SYNC, 0, 1, 1, {0: 0}, "x", "one"), event(SYNC, 0, 1, 1, {0: 0}, "y", "two")],
    ),
    "an old id of an instance is heard": (
        "owner",
        [
            event(SYNC, 0, 1, 1, {0: 0}, "one-1", "one"),
            event(SYNC, 5, 6, 1, {0: 0}, "one-2", "one"),
            event(BEAT, 7, 8, 1, {}, "one-1", "one"),
        ],
    ),
    "a heartbeat of an earlier generation": ("generation", [*TAKES_OVER, event(BEAT, 20, 21, 1)]),
    "an assignment of an earlier generation": (
        "generation",
        [event(SYNC, 0, 1, 2, {0: 0}), event(SYNC, 5, 6, 1, {0: 0}, "b")],
    ),
    "a commit of an earlier generation": ("generation", [*TAKES_OVER, *commit(20, 21, 7, 1)]),
    "a commit is lost": ("lost", [*commit(0, 1, 5), event(FETCH, 2, 3, 2, {0: NOTHING})]),
    "a later commit is lost": (
        "lost",
        [*commit(0, 1, 5), *commit(2, 3, 6), event(FETCH, 4, 5, 2, {0: 5})],
    ),
    "what nobody has committed": ("unknown", [*commit(0, 1, 5), event(FETCH, 2, 3, 2, {0: 6})]),
    "what was committed later": ("unknown", [event(FETCH, 0, 1, 1, {0: 5}), *commit(2, 3, 5)]),
    "a commit is overwritten by an older one": ("behind", [*commit(0, 1, 5), *commit(2, 3, 4)]),
    "a commit is overwritten by the same": ("behind", [*commit(0, 1, 5), *commit(2, 3, 5, member="b")]),
    "a strange answer": ("strange", [event(STRANGE, 0, 1, code=-1)]),
}


@pytest.mark.parametrize("events", RIGHT.values(), ids=RIGHT.keys())
def test_a_history_that_is_right_has_no_findings(events: list[Event]) -> None:
    assert check(events) == []
    assert check(reversed(events)) == []


@pytest.mark.parametrize(("kind", "events"), WRONG.values(), ids=WRONG.keys())
def test_each_fault_is_found(kind: str, events: list[Event]) -> None:
    assert {found.kind for found in check(events)} == {kind}
    # In a crowd of other groups too.
    others = [one._replace(group="other") for one in TAKES_OVER]
    assert {(found.kind, found.group) for found in check([*others, *events])} == {(kind, "g")}


def test_a_heartbeat_while_the_broker_reads_proves_nothing() -> None:
    events = [*TAKES_OVER, event(BEAT, 20, 30, 1)]
    assert check(events, [(19, 21)]) == check(events, [(29, 35)]) == []
    assert check(events, [(15, 19), (31, 40)]) != []
    others = [*TAKES_OVER, *commit(20, 30, 7, 1)]
    assert check(others, [(19, 31)]) != []


def test_a_history_is_read_as_it_was_written_but_for_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"".join(one.line() for one in TAKES_OVER) + TAKES_OVER[0].line()[:10])
    assert list(read([file])) == TAKES_OVER
