"""Tables for people: plain aligned lines that fit the terminal, or whole where there is none.

Where a table is too wide, first the columns go that can be done without, the least important first; then long texts
are cut in the middle, because names often begin alike. What is gone is in `--json`, in a wider terminal, or in a pipe.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cli import terminal
from ottla.cli.terminal import can_draw, paint
from ottla.escapes import visible_line

_BETWEEN = "  "
_LEAST_TEXT = 8  # columns that a text is cut down to at most


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers is set right and never cut.

    rank: above 0 it may be left out, the highest first
    yields: its texts are cut before those of others
    """

    name: str
    right: bool = False
    rank: int = 0
    yields: bool = False


def table(
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[object]],
    *,
    width: int | None = None,
    indent: str = "",
) -> list[str]:
    """The lines of a table, names first, at most `width` wide if numbers leave room. A name with > is a number's."""
    described = [_column(column) for column in columns]
    cells = [[visible_line(str(cell)) for cell in row] for row in rows]
    kept = list(range(len(described)))
    widths = [
        max(display_width(text) for text in (column.name, *(row[at] for row in cells)))
        for at, column in enumerate(described)
    ]
    if width is not None:
        room = width - len(indent)
        while _total(widths, kept) > room and any(described[at].rank for at in kept):
            kept.remove(max(kept, key=lambda at: described[at].rank))
        for texts in (
            [at for at in kept if described[at].yields],
            [at for at in kept if not described[at].right],
        ):
            _squeeze(widths, texts, _total(widths, kept) - room)
    head = _line(indent, [described[at].name for at in kept], [(described[at], widths[at]) for at in kept])
    return [head] + [
        _line(indent, [row[at] for at in kept], [(described[at], widths[at]) for at in kept]) for row in cells
    ]


def print_table(
    columns: Sequence[Column | str], rows: Sequence[Sequence[object]], *, indent: str = ""
) -> None:
    """On stdout, as wide as the terminal."""
    head, *lines = table(columns, rows, width=terminal.width(), indent=indent)
    sys.stdout.write("".join(f"{line}\n" for line in (paint(head, "dim"), *lines)))


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Names and what is known, one below the other; a long text goes on in the next line."""
    widest = max(display_width(name) for name, _ in facts)
    width = terminal.width()
    for name, fact in facts:
        text = visible_line(str(fact))
        before = name.ljust(widest) + _BETWEEN
        for piece in _pieces(text, None if width is None else max(width - len(before), _LEAST_TEXT)):
            sys.stdout.write(f"{before}{piece}".rstrip() + "\n")
            before = " " * len(before)


def print_heading(name: str, facts: str) -> None:
    """A name and what is known of it in a line, or in several where there is no room."""
    line, width = visible_line(f"{name}  {facts}"), terminal.width()
    if width is None or display_width(line) <= width:
        print(line)
        return
    for text, indent in ((name, ""), (facts, "  ")):
        for piece in _pieces(visible_line(text), width - len(indent)):
            print(indent + piece)


def display_width(text: str) -> int:
    """Columns of a terminal: some characters take two, some none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def shorten(text: str, width: int) -> str:
    """Cut in the middle, so that beginning and end can be told."""
    if display_width(text) <= width:
        return text
    dots = "…" if can_draw() else "..."
    room = max(width - len(dots), 0)
    return _first(text, room - room // 2) + dots + _first(text[::-1], room // 2)[::-1]


def _first(text: str, width: int) -> str:
    while display_width(text) > width:
        text = text[: min(len(text) - 1, width)]
    return text


def _column(column: Column | str) -> Column:
    return column if isinstance(column, Column) else Column(column.rstrip(">"), column.endswith(">"))


def _total(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[at] for at in kept) + len(_BETWEEN) * (len(kept) - 1)


def _squeeze(widths: list[int], texts: Sequence[int], too_much: int) -> None:
    """Take columns away from the widest texts."""
    while too_much > 0 and texts:
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= _LEAST_TEXT:
            return
        widths[widest] -= 1
        too_much -= 1


def _line(indent: str, cells: Sequence[str], shape: Sequence[tuple[Column, int]]) -> str:
    shown = []
    for cell, (column, width) in zip(cells, shape, strict=True):
        text = cell if column.right else shorten(cell, width)
        padding = " " * (width - display_width(text))
        shown.append(padding + text if column.right else text + padding)
    return (indent + _BETWEEN.join(shown)).rstrip()


def _pieces(text: str, width: int | None) -> list[str]:
    """Broken at spaces; a word that is longer than a line is broken anywhere."""
    if width is None:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
