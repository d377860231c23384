"""A TOML file read against a list of known keys, so that a mistake is told with its line and the nearest key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ottla.errors import PipelineFileError

_KINDS: dict[type, str] = {str: "a text", bool: "true or false", int: "a whole number"}


@dataclass(frozen=True)
class Key:
    """One key: what type its value has, which words it may be, and what it means (for the docs)."""

    kind: Any  # str, bool, int, list (of texts), dict (texts to texts), object (any table), or a tuple
    help: str
    choices: tuple[str, ...] = ()
    default: Any = None


Sections = Mapping[str, Mapping[str, Key]]


class TomlFile:
    """The tables of a file, each key checked; `complain` gives errors that name file, line and section."""

    def __init__(self, path: Path, sections: Sections) -> None:
        self.path = path
        self._text = path.read_text(encoding="utf-8")
        try:
            self._tables = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise PipelineFileError(f"{path}: {error}") from None
        self._sections = sections
        for name in self._tables:
            if name not in sections:
                raise self.complain(f"there is no section [{name}]{_nearest(name, sections)}", name, None)

    def table(self, section: str) -> dict[str, Any]:
        """A section's keys with their values, checked; empty if the file has no such section."""
        found = self._tables.get(section, {})
        if not isinstance(found, dict):
            raise self.complain(f"write [{section}], once", section, None)
        return self._checked(section, found, 0)

    def tables(self, section: str) -> list[dict[str, Any]]:
        """A section that may be there several times: [[section]]."""
        found = self._tables.get(section, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.complain(f"write [[{section}]], with two brackets", section, None)
        return [self._checked(section, one, index) for index, one in enumerate(found)]

    def complain(self, message: str, section: str, key: str | None, index: int = 0) -> PipelineFileError:
        line = _line_of(self._text, section, key, index)
        place = f"{self.path}:{line}" if line else str(self.path)
        return PipelineFileError(f"{place}: [{section}]{f' {key}' if key else ''}: {message}")

    def _checked(self, section: str, found: dict[str, Any], index: int) -> dict[str, Any]:
        known = self._sections[section]
        for name, value in found.items():
            key = known.get(name)
            if key is None:
                raise self.complain(f"there is no such key{_nearest(name, known)}", section, name, index)
            if problem := _problem(key, value):
                raise self.complain(problem, section, name, index)
        return {name: found.get(name, key.default) for name, key in known.items()}


def _problem(key: Key, value: Any) -> str:
    """What is wrong with a value, or nothing."""
    if isinstance(key.kind, tuple):
        problems = [_problem(replace(key, kind=kind), value) for kind in key.kind]
        return "" if "" in problems else " or ".join(problems)
    if key.kind is list:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            return f'a list of texts is expected, such as ["a", "b"], not {value!r}'
        wrong = [one for one in value if key.choices and one not in key.choices]
        return f"{wrong[0]!r} is not one of: {', '.join(key.choices)}" if wrong else ""
    if key.kind is object:
        return "" if isinstance(value, dict) else f"a table is expected, not {value!r}"
    if key.kind is dict:
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            return f"a table of texts is expected, not {value!r}"
        return ""
    if type(value) is not key.kind:  # a bool is an int, too
        return f"{_KINDS[key.kind]} is expected, not {value!r}"
    if key.choices and value not in key.choices:
        return f"{value!r} is not one of: {', '.join(key.choices)}{_nearest(value, key.choices)}"
    return ""


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"


def _line_of(text: str, section: str, key: str | None, index: int) -> int | None:
    """The line of a key, or of its section's head: found by looking, as the parser does not tell."""
    head = re.compile(rf"\s*\[\[?\s*{re.escape(section)}(\s*\]|\.)")
    entry = re.compile(rf"""\s*["']?{re.escape(key or "")}["']?\s*(=|\.)""")
    sub_head = re.compile(rf"\s*\[\s*{re.escape(section)}\.{re.escape(key or '')}\s*\]")
    seen, inside, head_line = -1, False, None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            if key and sub_head.match(line):
                return number
            inside = bool(head.match(line))
            if inside:
                seen += 1
                head_line = number if seen == index else head_line
        elif inside and seen == index and key and entry.match(line):
            return number
    return head_line
