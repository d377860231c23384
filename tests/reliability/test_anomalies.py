"""The anomaly checker finds each kind, and nothing in a history that is as it should be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.reliability.anomalies import History, Outcome, Poll, Transaction, Value, find

PLACE = ("t", 0)
OTHER = ("t", 1)


def value(number: int, attempt: str = "a", key: str = "k") -> Value:
    return Value(key, number, attempt)


def good() -> History:
    """Two transactions that are committed, one that is not, one nobody knows of; two readers."""
    return History(
        [
            Transaction("w", [(PLACE, value(1)), (OTHER, value(1, key="o"))], Outcome.COMMITTED),
            Transaction("w", [(PLACE, value(2, "x")), (OTHER, value(2, "x", "o"))], Outcome.ABORTED),
            Transaction("w", [(PLACE, value(2)), (PLACE, value(3))], Outcome.COMMITTED),
            Transaction("w", [(PLACE, value(4)), (OTHER, value(4, key="o"))], Outcome.UNKNOWN),
            Transaction("w", [(PLACE, value(9))], Outcome.UNKNOWN),
        ],
        [
            Poll("r1", PLACE, [(0, value(1))]),
            Poll("r1", OTHER, [(0, value(1, key="o")), (5, value(4, key="o"))]),
            Poll("r1", PLACE, [(4, value(2)), (5, value(3)), (7, value(4))]),
            Poll("r2", PLACE, [(4, value(2)), (5, value(3))]),
        ],
    )


def lost(history: History) -> None:
    history.transactions.append(Transaction("w", [(PLACE, value(5))], Outcome.COMMITTED))


def lost_everywhere(history: History) -> None:
    history.transactions.append(Transaction("w", [(("other", 3), value(5))], Outcome.COMMITTED))


def aborted(history: History) -> None:
    history.polls.append(Poll("r3", PLACE, [(2, value(2, "x"))]))


def torn(history: History) -> None:
    history.transactions.append(Transaction("w", [(PLACE, value(4)), (PLACE, value(7))], Outcome.UNKNOWN))


def twice(history: History) -> None:
    history.polls.append(Poll("r1", PLACE, [(9, value(3, "again"))]))


def misplaced(history: History) -> None:
    history.polls.append(Poll("r1", PLACE, [(9, value(0))]))


def skipped(history: History) -> None:
    history.polls += [Poll("r3", PLACE, [(0, value(1))]), Poll("r3", PLACE, [(5, value(3))])]


def skipped_within(history: History) -> None:
    history.polls.append(Poll("r3", PLACE, [(0, value(1)), (5, value(3))]))


def backwards(history: History) -> None:
    history.polls += [Poll("r3", PLACE, [(5, value(3))]), Poll("r3", PLACE, [(4, value(2))])]


def again(history: History) -> None:
    history.polls += [Poll("r3", PLACE, [(5, value(3))]), Poll("r3", PLACE, [(5, value(3))])]


def changed(history: History) -> None:
    history.polls.append(Poll("r3", PLACE, [(7, value(8))]))


def test_a_good_history_has_none() -> None:
    assert find(good()) == []


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lost, "lost write"),
        (lost_everywhere, "lost write"),
        (aborted, "aborted read"),
        (torn, "torn transaction"),
        (twice, "duplicate"),
        (misplaced, "order"),
        (skipped, "skipped poll"),
        (skipped_within, "skipped poll"),
        (backwards, "non-monotonic poll"),
        (again, "non-monotonic poll"),
        (changed, "changed record"),
    ],
)
def test_each_kind_is_found(spoil: Callable[[History], None], kind: str) -> None:
    history = good()
    spoil(history)
    assert kind in {anomaly.kind for anomaly in find(history)}


def test_a_value_is_read_as_it_is_written() -> None:
    assert Value.parse(str(value(7))) == value(7)
