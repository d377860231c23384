"""tools/check_code.py finds what nobody uses and what is too long, and holds the list of exceptions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.check_code import (
    Finding,
    Source,
    compare,
    promised_names,
    read_list,
    read_sources,
    too_long,
    unused,
    words,
)


def source(text: str, module: str = "ottla.a") -> Source:
    return Source(module, text, ast.parse(text))


def unused_in(*texts: str, promised: frozenset[str] = frozenset(), tests: str = "") -> list[str]:
    sources = [source(text, f"ottla.{'abc'[number]}") for number, text in enumerate(texts)]
    return [finding.name for finding in unused(sources, set(promised), words([tests]))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def lonely(): pass", ["ottla.a.lonely"]),
        ("async def lonely(): pass", ["ottla.a.lonely"]),
        ("class Lonely: pass", ["ottla.a.Lonely"]),
        ("LIMIT = 5", ["ottla.a.LIMIT"]),
        ("LIMIT: int = 5", ["ottla.a.LIMIT"]),
        ("class A:\n    def run(self): pass\nA()", ["ottla.a.A.run"]),
        ("class A:\n    @property\n    def size(self): pass\nA()", ["ottla.a.A.size"]),
        ("class A(NamedTuple):\n    size: int\nA(size=5)", ["ottla.a.A.size"]),
        ("class A:\n    __slots__ = ('size',)\n    size: int\nA()", ["ottla.a.A.size"]),
        ("class A: pass\nclass B(A):\n    def run(self): pass\nB()", ["ottla.a.B.run"]),
    ],
)
def test_what_nobody_reads_is_found(text: str, names: list[str]) -> None:
    assert unused_in(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "def used(): pass\nused()",
        "class A:\n    size: int\nprint(A().size)",
        "class A:\n    size: int\nprint(getattr(A(), 'size'))",
        "class A:\n    size: int\nmatch x:\n    case A(size=5): pass",
        "@app.command()\ndef show(): pass",
        "class A(Protocol): pass\nA",
        "class Session(asyncio.BufferedProtocol):\n    def eof_received(self): pass\nSession",
        "class Code(IntEnum):\n    NONE = 0\nCode(0)",
        "KEY, VALUE = range(2)\nprint(KEY)",
        "class A:\n    def __len__(self): pass\nA()",
    ],
)
def test_what_is_used_is_not_reported(text: str) -> None:
    assert unused_in(text) == []


def test_a_use_in_another_module_counts_and_one_in_a_test_does_not() -> None:
    assert unused_in("def f(): pass", "from ottla.a import f") == []
    assert unused_in("def f(): pass", tests="from ottla.a import f") == ["ottla.a.f"]


def test_what_is_for_tests_is_used_by_tests() -> None:
    helper = source("def f(): pass", "ottla.testing.helper")
    assert list(unused([helper], set(), {"f"})) == []
    assert list(unused([helper], set(), set())) == [Finding("unused", "ottla.testing.helper.f")]


def test_what_the_pages_promise_is_used(tmp_path: Path) -> None:
    assert unused_in("def f(): pass", promised=frozenset({"f"})) == []
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "docs/library.md").write_text("call `flush`")
    (tmp_path / "docs/testing.md").write_text("")
    (tmp_path / "docs/other.md").write_text("unheard\n```python\nlog.append()\n```\n")
    assert promised_names(tmp_path) == {"call", "flush", "log", "append"}


def test_messages_are_used_if_something_imports_them() -> None:
    made = [
        source("class Gone: pass", f"ottla.protocol.messages.{name}") for name in ("gone", "here", "whole")
    ]
    user = source("from ottla.protocol.messages.here import Gone\nfrom ottla.protocol.messages import whole")
    assert [finding.name for finding in unused([*made, user], set(), set())] == [
        "ottla.protocol.messages.gone"
    ]


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def test_functions_over_fifty_lines_and_files_over_four_hundred_are_found() -> None:
    assert list(too_long([source(function(50))])) == []
    assert list(too_long([source(function(51))])) == [Finding("function", "ottla.a.f", 60)]
    assert list(too_long([source("#\n" * 400)])) == []
    assert list(too_long([source("#\n" * 401)])) == [Finding("file", "ottla.a", 410)]


def test_methods_and_inner_functions_are_named_by_where_they_are() -> None:
    inside = "class A:\n    def g(self):\n" + "".join(
        f"        {line}\n" for line in function(60).splitlines()
    )
    names = [finding.name for finding in too_long([source(inside)])]
    assert names == ["ottla.a.A.g", "ottla.a.A.g.f"]


def test_the_list_only_gets_shorter(tmp_path: Path) -> None:
    path = tmp_path / "exceptions.txt"
    path.write_text("# why\nunused ottla.a.f  # reason\n\nfile ottla.a 410\n")
    listed = read_list(path)
    found = [Finding("unused", "ottla.a.f"), Finding("file", "ottla.a", 410)]
    assert compare(found, listed) == []
    (new,) = compare([*found, Finding("unused", "ottla.a.g")], listed)
    assert new.startswith("unused ottla.a.g: not in")
    (gone,) = compare(found[1:], listed)
    assert gone.startswith("unused ottla.a.f: listed")
    assert len(compare([found[0], Finding("file", "ottla.a", 420)], listed)) == 2, "it has grown"


def test_modules_are_named_as_they_are_imported(tmp_path: Path) -> None:
    (tmp_path / "ottla/log").mkdir(parents=True)
    for name in ("__init__", "segment"):
        (tmp_path / f"ottla/log/{name}.py").write_text("")
    assert [one.module for one in read_sources(tmp_path / "ottla", tmp_path)] == [
        "ottla.log",
        "ottla.log.segment",
    ]
