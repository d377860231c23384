"""The walks in docs/architecture.md: each function they name exists, and is reached from the one above it, in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/ottla"
PAGE = (ROOT / "docs/architecture.md").read_text()
_LINE = re.compile(r"^( {4,})([\w.]+) +([\w/]+\.py) +\S")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Hop(NamedTuple):
    """One line of a walk."""

    indent: int
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.name} ({self.path})"


def _walks() -> dict[str, list[Hop]]:
    """The lines of each section that is called "The way of ..."."""
    walks = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        if title.startswith("The way of"):
            found = [match for line in body.splitlines() if (match := _LINE.match(line))]
            walks[title] = [Hop(len(match[1]), match[2], match[3]) for match in found]
    return walks


WALKS = _walks()


@cache
def _functions(path: str) -> dict[str, Function]:
    """The functions of a module, by `name` or `Class.name`."""
    found: dict[str, Function] = {}
    for node in ast.parse((PACKAGE / path).read_text()).body:
        if isinstance(node, Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{child.name}": child for child in node.body if isinstance(child, Function)
            }
            if f"{node.name}.__init__" in found:
                found[node.name] = found[f"{node.name}.__init__"]
    return found


def _mentions(path: str, node: ast.AST, seen: set[str]) -> Iterator[str]:
    """The names in a function in the order in which they are used: what is called comes after its arguments, and before
    the names inside of it if it is a function of the same module."""
    near = {name.rpartition(".")[2]: function for name, function in _functions(path).items()}
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        parts.append(parts.pop(0))
    for part in parts:
        yield from _mentions(path, part, seen)
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        yield name
        if name in near and name not in seen:
            seen.add(name)
            yield from _mentions(path, near[name], seen)


def _is_registered(hop: Hop) -> bool:
    """Handlers are found by the key of their request."""
    decorators = _functions(hop.path)[hop.name].decorator_list
    return any(isinstance(d, ast.Call) and ast.unparse(d.func) == "api" for d in decorators)


def _children(hops: list[Hop], at: int) -> list[Hop]:
    children: list[Hop] = []
    for hop in hops[at + 1 :]:
        if hop.indent <= hops[at].indent:
            break
        if not children or hop.indent <= children[0].indent:
            children.append(hop)
    return children


def test_a_record_a_commit_a_spark_read_and_a_pipeline_batch_are_walked() -> None:
    assert {"The way of a record", "The way of a record back", "The way of a commit"} <= set(WALKS)
    assert {"The way of a Spark read", "The way of a pipeline batch"} <= set(WALKS)
    assert all(len(hops) >= 6 for hops in WALKS.values())


@pytest.mark.parametrize("title", WALKS)
def test_what_a_walk_names_exists(title: str) -> None:
    assert [str(hop) for hop in WALKS[title] if hop.name not in _functions(hop.path)] == []


@pytest.mark.parametrize("title", WALKS)
def test_each_hop_is_reached_from_the_one_above_it_in_order(title: str) -> None:
    hops = WALKS[title]
    for at, hop in enumerate(hops):
        mentions = _mentions(hop.path, _functions(hop.path)[hop.name], {hop.name.rpartition(".")[2]})
        for child in _children(hops, at):
            if not _is_registered(child):
                assert child.name.rpartition(".")[2] in mentions, f"{child} is not reached from {hop}"
