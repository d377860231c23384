"""State machines that are tables."""

from __future__ import annotations

from enum import Enum

import pytest

from ottla.states import IllegalEventError, next_state


class State(Enum):
    SHUT = 1
    OPEN = 2


class Event(Enum):
    PUSH = 1
    PULL = 2


TABLE = {State.SHUT: {Event.PUSH: State.OPEN}, State.OPEN: {Event.PULL: State.SHUT}}


def test_an_event_leads_where_the_table_says() -> None:
    assert next_state(TABLE, State.SHUT, Event.PUSH) is State.OPEN
    assert next_state(TABLE, State.OPEN, Event.PULL) is State.SHUT


def test_what_the_table_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(IllegalEventError, match="PULL cannot happen in the state SHUT"):
        next_state(TABLE, State.SHUT, Event.PULL)
