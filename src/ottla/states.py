"""State machines as literal tables: which event leads from which state to which.

A table is all there is to know about a machine: what is not in it cannot happen, and if it does, that is a defect and
said so, before anything follows from a state that nobody thought of. The theory of a machine (what each state means,
who brings each event) stands in the docstring of the module that has its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class IllegalEventError(Exception):
    """An event that a state machine does not have in its state: a defect of this program, not of a client."""


def next_state(table: Mapping[S, Mapping[E, S]], state: S, event: E) -> S:
    """The state that an event leads to; IllegalEventError if the table has none."""
    try:
        return table[state][event]
    except KeyError:
        raise IllegalEventError(f"{event.name} cannot happen in the state {state.name}") from None
