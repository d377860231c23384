"""The checker of histories: it finds each kind of fault, names it, and says nothing of what is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reliability.ledger import Entry, Sender, check, entry_of, summary, value_of


def sender(sent: int, *acked: int, is_idempotent: bool = True) -> Sender:
    """Acknowledged where a partition of this sender alone has them."""
    return Sender(is_idempotent, sent, {number: number for number in acked})


def log(*numbers: int, name: str = "a") -> list[Entry]:
    return [Entry(offset, name, number) for offset, number in enumerate(numbers)]


def kinds(senders: dict[str, Sender], read: list[Entry], **how: Any) -> set[str]:
    return {finding.kind for finding in check(senders, read, **how)}


RIGHT = {
    "nothing": (sender(0), []),
    "all of it": (sender(3, 0, 1, 2), log(0, 1, 2)),
    "not acknowledged, but there": (sender(3, 0), log(0, 1, 2)),
    "not acknowledged and not there": (sender(5, 0, 1), log(0, 1)),
    "acknowledged without an offset": (Sender(True, 2, {0: None, 1: None}), log(0, 1)),
    "sent again by one who may": (Sender(False, 3, {0: 0, 1: 1, 2: 4}), log(0, 1, 0, 1, 2)),
    "never there, of one who may skip": (Sender(False, 3, {0: 0, 2: 1}), log(0, 2)),
}


@pytest.mark.parametrize(("who", "read"), RIGHT.values(), ids=RIGHT.keys())
def test_a_history_that_is_right_has_no_findings(who: Sender, read: list[Entry]) -> None:
    assert check({"a": who}, read) == []


WRONG = {
    "the last is lost": ("lost", sender(3, 0, 1, 2), log(0, 1)),
    "all are lost": ("lost", sender(1, 0), []),
    "one of one who may skip is lost": ("lost", Sender(False, 3, {0: 0, 1: None, 2: 1}), log(0, 2)),
    "one is in another's place": ("moved", Sender(True, 2, {0: 0, 1: 0}), log(0, 1)),
    "one is acknowledged beyond the end": ("moved", Sender(True, 1, {0: 7}), log(0)),
    "one is there twice": ("duplicate", sender(2, 0, 1), log(0, 1, 1)),
    "two are there twice, later": ("duplicate", sender(4, 0, 1), log(0, 1, 2, 3, 0, 1)),
    "two are exchanged": ("order", sender(3), log(0, 2, 1)),
    "two of one who may repeat are exchanged": ("order", sender(3, is_idempotent=False), log(0, 2, 1)),
    "one in the middle is missing": ("skipped", sender(3), log(0, 2)),
    "the first is missing": ("skipped", sender(3), log(1, 2)),
    "one was never sent": ("unknown", sender(2), log(0, 1, 2)),
    "an offset is missing": ("hole", sender(2), [Entry(0, "a", 0), Entry(2, "a", 1)]),
    "the first offset is missing": ("hole", sender(1), [Entry(1, "a", 0)]),
    "an offset comes twice": ("hole", sender(2), [Entry(0, "a", 0), Entry(0, "a", 1)]),
}


@pytest.mark.parametrize(("kind", "who", "read"), WRONG.values(), ids=WRONG.keys())
def test_each_fault_is_found_and_named(kind: str, who: Sender, read: list[Entry]) -> None:
    assert kind in kinds({"a": who}, read)


def test_a_record_of_nobody_is_found() -> None:
    assert kinds({"a": sender(1)}, log(0, name="b")) == {"unknown"}


def test_what_was_read_before_must_stay() -> None:
    senders = {"a": sender(3)}
    assert kinds(senders, log(0, 1, 2), earlier=log(0, 1)) == set()
    assert kinds(senders, log(0), earlier=log(0, 1)) == {"changed"}
    both = {"a": sender(3), "b": sender(1)}
    assert kinds(both, [Entry(0, "b", 0), Entry(1, "a", 0)], earlier=log(0)) == {"changed"}


def test_a_log_that_begins_later_has_no_hole_there() -> None:
    assert kinds({"a": sender(2)}, [Entry(5, "a", 0), Entry(6, "a", 1)], start_offset=5) == set()


def test_values_lead_back_to_who_sent_them() -> None:
    assert entry_of(7, value_of("raw-1", 42, b"| filler |")) == Entry(7, "raw-1", 42)
    for strange in (None, b"", b"a", b"a|", b"a|x|", b"a|1", b"\xff"):
        assert kinds({"a": sender(9)}, [entry_of(0, strange)]) == {"unknown"}


def test_a_summary_is_short() -> None:
    findings = check({"a": sender(100, *range(100))}, [])
    assert summary(findings, most=2).splitlines() == [
        "lost: a 0, acknowledged at 0",
        "lost: a 1, acknowledged at 1",
        "and 98 more",
    ]


@given(st.data())
def test_any_damage_to_a_full_history_is_found(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from("abc"), min_size=2, max_size=12))
    counts = dict.fromkeys("abc", 0)
    read = []
    for offset, name in enumerate(names):
        read.append(Entry(offset, name, counts[name]))
        counts[name] += 1
    senders = {name: Sender(True, count) for name, count in counts.items()}
    for offset, name, number in read:
        senders[name].acked[number] = offset
    assert check(senders, read) == []
    place = data.draw(st.integers(0, len(read) - 1))
    damage = data.draw(st.sampled_from(["drop", "repeat", "swap"]))
    records = [entry[1:] for entry in read]
    if damage == "drop":
        del records[place]
    elif damage == "repeat":
        records.insert(data.draw(st.integers(0, len(records))), records[place])
    else:
        other = data.draw(st.integers(0, len(read) - 1).filter(lambda at: at != place))
        records[place], records[other] = records[other], records[place]
    assert check(senders, [Entry(offset, *record) for offset, record in enumerate(records)])
