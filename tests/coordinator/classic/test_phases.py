"""The phases of a classic group: every transition by name, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.phases import TABLE, GroupEvent, GroupPhase
from ottla.states import IllegalEventError

LEGAL = """
    EMPTY RESTORED STABLE, EMPTY REBALANCE PREPARING, EMPTY REMOVED DEAD,
    PREPARING JOINED COMPLETING, PREPARING DESERTED EMPTY, PREPARING REMOVED DEAD,
    COMPLETING ASSIGNED STABLE, COMPLETING REBALANCE PREPARING, COMPLETING REMOVED DEAD,
    STABLE REBALANCE PREPARING, STABLE NOT_WRITTEN COMPLETING, STABLE REMOVED DEAD
"""
STEPS = {
    (GroupPhase[old], GroupEvent[event]): GroupPhase[new]
    for old, event, new in (step.split() for step in LEGAL.split(","))
}


def test_the_table_has_these_transitions_and_no_other() -> None:
    assert {(old, event): new for old, steps in TABLE.items() for event, new in steps.items()} == STEPS
    assert set(TABLE) == set(GroupPhase)


def test_kafka_allows_each_of_them() -> None:
    """From which phases Kafka lets a group come into each; ours are among them but for two: a group as it is read from
    the log, and assignments that are taken back, have no phase of their own before in Kafka."""
    anywhere = set(GroupPhase)
    before = {
        GroupPhase.EMPTY: {GroupPhase.PREPARING},
        GroupPhase.PREPARING: {GroupPhase.EMPTY, GroupPhase.STABLE, GroupPhase.COMPLETING},
        GroupPhase.COMPLETING: {GroupPhase.PREPARING},
        GroupPhase.STABLE: {GroupPhase.COMPLETING},
        GroupPhase.DEAD: anywhere,
    }
    others = {(old, event.name) for (old, event), new in STEPS.items() if old not in before[new]}
    assert others == {(GroupPhase.EMPTY, "RESTORED"), (GroupPhase.STABLE, "NOT_WRITTEN")}


@given(st.lists(st.sampled_from(GroupEvent)))
def test_a_group_moves_as_the_table_says_and_refuses_the_rest(events: list[GroupEvent]) -> None:
    group = Group("g", 0)
    for now_ms, event in enumerate(events, 1):
        old, expected = group.phase, STEPS.get((group.phase, event))
        if expected is None:
            before = (group.phase, group.timestamp, group.was_empty)
            with pytest.raises(IllegalEventError, match=event.name):
                group.move(event, now_ms)
            assert (group.phase, group.timestamp, group.was_empty) == before
        else:
            group.move(event, now_ms)
            assert (group.phase, group.timestamp) == (expected, now_ms)
            assert group.was_empty == (old is GroupPhase.EMPTY)
