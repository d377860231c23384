"""Tables fit the terminal, plurals are right, and no character that a terminal obeys gets through."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla
from ottla.cli.tables import Column, display_width, shorten, table
from ottla.escapes import visible, visible_bytes, visible_json, visible_line
from ottla.words import counted, noun

TEXTS = st.text(max_size=120)
NUMBERS = st.integers(0, 10**9)


def test_cells_are_aligned_and_numbers_set_right() -> None:
    assert table(("name", "count>"), [("a", 5), ("long name", 1234)]) == [
        "name       count",
        "a              5",
        "long name   1234",
    ]


@given(
    rows=st.lists(st.tuples(TEXTS, NUMBERS, TEXTS, NUMBERS, TEXTS), max_size=6), width=st.integers(60, 200)
)
def test_a_table_is_never_wider_than_the_terminal(
    rows: list[tuple[str, int, str, int, str]], width: int
) -> None:
    columns = ("topic", "end>", "member", "lag>", Column("host", rank=1))
    lines = table(columns, rows, width=width, indent="  ")
    assert len(lines) == len(rows) + 1
    assert max(map(display_width, lines)) <= width
    for line, row in zip(lines[1:], rows, strict=True):
        assert f"{row[1]}" in line
        assert f"{row[3]}" in line


@given(rows=st.lists(st.tuples(TEXTS, NUMBERS), max_size=6))
def test_without_a_terminal_nothing_is_cut(rows: list[tuple[str, int]]) -> None:
    lines = table(("topic", Column("end", right=True, rank=1)), rows)
    for line, (name, end) in zip(lines[1:], rows, strict=True):
        assert line.startswith(visible_line(name).rstrip())
        assert line.endswith(str(end))


def test_columns_that_can_be_done_without_go_first_and_the_least_important_before_others() -> None:
    columns = ("topic", Column("host", rank=1), Column("client", rank=2))
    rows = [("orders", "h" * 20, "c" * 20)]
    assert [len(table(columns, rows, width=width)[0].split()) for width in (60, 40, 20)] == [3, 2, 1]
    assert "c" not in table(columns, rows, width=40)[1]


@given(text=st.text(), width=st.integers(3, 80))
def test_what_is_cut_keeps_its_beginning_and_its_end(text: str, width: int) -> None:
    short = shorten(text, width)
    assert display_width(short) <= max(width, display_width(text) if "…" not in short else width)
    before, dots, after = short.partition("…")
    if dots and "…" not in text:
        assert text.startswith(before)
        assert text.endswith(after)


# -- what a terminal would obey

BAD = "\x00\x07\x08\x1b\x7f\x80\x9b\x9d\r\v\u202e\u2066\u2069\u200f\u061c\u2028\U000e0041"


@given(st.text(st.sampled_from(BAD + "abcß漢 \t\n")))
def test_no_control_and_no_mark_that_turns_text_round_gets_through(text: str) -> None:
    shown = visible(text)
    assert not set(shown) & set(BAD)
    assert not any(unicodedata.category(one) == "Cc" for one in visible_line(shown))
    assert visible("".join(one for one in text if one not in BAD)) == "".join(
        one for one in text if one not in BAD
    )


@given(st.text())
def test_json_for_a_terminal_means_the_same(text: str) -> None:
    shown = visible_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    assert not set(shown) & set(BAD)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x1b]0;title\x07", rb"\x1b]0;title\x07"),
        (b"two\nlines\tand a tab", b"two\nlines\tand a tab"),
        (b"over\rwritten", rb"over\rwritten"),
        (b"\xff\x9b", rb"\xff\x9b"),
        ("größe 漢".encode(), "größe 漢".encode()),
        ("\u202egnp.exe".encode(), rb"\u202egnp.exe"),
    ],
)
def test_bytes_are_shown_as_text_with_escapes(data: bytes, shown: bytes) -> None:
    assert visible_bytes(data) == shown


# -- plurals


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (12_000, "12,000 records")]
)
def test_a_noun_follows_its_number(number: int, text: str) -> None:
    assert counted(number, "record") == text
    assert noun(number, "batch", "batches") == ("batch" if number == 1 else "batches")


def test_nobody_puts_a_plural_behind_a_number_by_hand() -> None:
    words = "records|segments|files|partitions|topics|rows|members|producers|groups|entries"
    by_hand = re.compile(rf"\{{(?!counted|noun|differing)[^{{}}]*\}} ({words})\b")
    source = Path(ottla.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for folder in ("cli", "spark/pipeline", "spark/sinks", "spark/tables")
        for path in sorted((source / folder).rglob("*.py"))
        for line in path.read_text().splitlines()
        if by_hand.search(line)
    ]
    assert found == []
