"""The reasons for which a connection is not read from: what the table says is what the session does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ottla.server import pauses
from ottla.server.pauses import TABLE

SOURCE = Path(pauses.__file__).with_name("session.py")
NAMES = {name: value for name, value in vars(pauses).items() if name.isupper() and isinstance(value, int)}


def users(method: str) -> dict[str, set[str]]:
    """Which methods of Session call this one, by the reason that they give it."""
    found: dict[str, set[str]] = {}
    (session,) = (
        node
        for node in ast.parse(SOURCE.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Session"
    )
    for function in session.body:
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == f"self.{method}":
                assert isinstance(function, ast.FunctionDef)
                found.setdefault(ast.unparse(call.args[0]), set()).add(function.name)
    return found


def test_each_reason_is_a_bit_of_its_own_and_in_the_table() -> None:
    assert sorted(NAMES.values()) == [1 << place for place in range(len(NAMES))]
    assert set(TABLE) == set(NAMES.values())


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_reason_is_set_and_cleared_by_those_whom_the_table_names(name: str) -> None:
    pause = TABLE[NAMES[name]]
    assert pause.why
    assert users("_pause")[name] == pause.set_by
    assert users("_resume")[name] == pause.cleared_by


def test_nothing_else_is_a_reason() -> None:
    assert set(users("_pause")) == set(users("_resume")) == set(NAMES)
