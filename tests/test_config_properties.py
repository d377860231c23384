"""Java's .properties syntax."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config import load_properties
from ottla.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a = 1\n  b\t:\t2", {"a": "1", "b": "2"}),
        ("# comment\n! comment\n\n   # indented\na=1 # not a comment", {"a": "1 # not a comment"}),
        ("a==1\nb=:2\nc  = = 3", {"a": "=1", "b": ":2", "c": "= 3"}),
        ("a=1,\\\n   2,\\\r\n3\rb=4", {"a": "1,2,3", "b": "4"}),
        ("a=x\\\n# still the value", {"a": "x# still the value"}),
        ("# no \\\na=1", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\ttab\\nline\\q", {"a": "\ttab\nlineq"}),
        ("a=\\u00e9\\ud83d\\ude00", {"a": "é😀"}),
        ("a=1  ", {"a": "1  "}),
        ("alone", {"alone": ""}),
        ("=value", {"": "value"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=line\u2028same", {"a": "line\u2028same"}),  # only CR and LF end a line
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert load_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12x4", "\\u=1"])
def test_a_broken_unicode_escape_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="four hex digits"):
        load_properties(text)


def escaped(text: str) -> str:
    """As java.util.Properties stores: every character that is not plain as an escape."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(c) if chr(c).isascii() and chr(c).isalnum() else f"\\u{c:04x}" for c in codes)


@settings(max_examples=100)
@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_what_java_would_store_is_loaded_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items())
    assert load_properties(text) == properties


@settings(max_examples=200)
@given(st.text(alphabet="a=: \t\f\\\n\r#!u0", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        properties = load_properties(text)
    except ConfigError:
        assert "\\u" in text
    else:
        assert sum(map(len, (*properties, *properties.values()))) <= len(text)
