"""Patterns of topic names: RE2's syntax, and never more time than the name and the pattern are long."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.patterns import matching as topic_patterns
from ottla.coordinator.patterns.matching import NamePattern
from ottla.coordinator.patterns.syntax import PatternError

NAMES = [
    "",
    "a",
    "aaa",
    "ab",
    "foo",
    "FOO",
    "foo.bar",
    "foo-1",
    "topic_9",
    "x.y-z_0",
    "__internal",
    "b" * 249,
]

IN_PYTHON = {r"\x{66}oo": "foo", r"\A.*\d\z": r"\A.*\d\Z", "a{,2}": r"a\{,2\}", "a{x}": r"a\{x\}"}


@pytest.mark.parametrize(
    "pattern",
    [
        "", ".*", "foo", "foo.*", "(foo|bar)", "[a-z]+", "^foo$", "fo{2}", "fo{1,}", r"foo(\.bar)?", r"\w+-\d",
        "(?i)foo", "(?i:f)oo", "(?:a|b)*", "(a*)*b", "[^a-z]+", r"foo\b.*", r"fo\Bo",
        "a{1,3}?", r"[\w.]+",
        "(?P<n>f)oo", "x|y|foo", "[a-f-z]+", "(?:foo|bar).*?", r"\x66oo", r"\x{66}oo", r"\A.*\d\z", "[]a]+",
        "[^]]", "a{,2}", "a{x}",
        r"[.\-_\w]*", "(?s).*", "(|a)+", r"\141", r"[\x61-\x63]+", "()", "a||b",
    ],
)  # fmt: skip
def test_patterns_match_what_pythons_match(pattern: str) -> None:
    compiled, expected = NamePattern(pattern), re.compile(IN_PYTHON.get(pattern, pattern))
    assert [compiled.matches(name) for name in NAMES] == [bool(expected.fullmatch(name)) for name in NAMES]


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        (r"\Qfoo.bar\E", r"foo\.bar"), (r"\Qfoo", "foo"), ("[[:alpha:]]+", "[a-zA-Z]+"),
        ("[[:^alpha:]]+", "[^a-zA-Z]+"),
        (r"\pL+", "[a-zA-Z]+"), (r"\p{Lu}+", "[A-Z]+"), (r"\P{L}+", "[^a-zA-Z]+"), (r"\p{^L}+", "[^a-zA-Z]+"),
        (r"\p{Greek}+", "[^\x00-\x7f]+"), ("(?U)a+", "a+"), ("(?i)f(?-i)oo", "[fF]oo"), ("(?<n>f)oo", "foo"),
        (r"\C+", ".+"), (r"[\pN_]+", "[0-9_]+"),
    ],
)  # fmt: skip
def test_what_only_re2_has_means_what_it_says(pattern: str, same: str) -> None:
    compiled, expected = NamePattern(pattern), re.compile(same)
    assert [compiled.matches(name) for name in NAMES] == [bool(expected.fullmatch(name)) for name in NAMES]


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (".+", "a b", True), (".+", "a\nb", False), ("(?s).+", "a\nb", True), ("(?s:.).", "\n\n", False),
        ("[^a]+", "é/", True), (r"\w+", "é", False), (r"\W", "é", True), (r"a\sb", "a b", True),
        (r"\pL+", "éß", True), (r"\p{Greek}+", "αβ", True), (r"\p{Greek}+", "ab", False), (r"\p{Latin}+", "é", True),
        (r"\p{Common}", "/", True), (r"\p{Any}+", "é/", True), ("[α-ω]+", "βγ", True), ("(?i)É+", "éÉ", True),
        ("(?i)[É-Ê]+", "éê", True), ("[É-Ê]+", "éê", False), ("[[:punct:]]", "/", True), ("[[:space:]]", "\t", True),
        (r"\x{1f600}", "\U0001f600", True), ("a|b", "", False), ("a?", "", True),
    ],
)  # fmt: skip
def test_names_may_have_any_characters_if_the_pattern_is_told_which(
    pattern: str, name: str, matches: bool
) -> None:
    assert NamePattern(pattern, frozenset(name)).matches(name) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "a)", "[a", "*a", "a**", "a+*", "a{2}{3}", "a{1001}", "a{2,1}", "((a{100}){100})", "(?=a)", "(?!a)",
        "(?<=a)b", r"\1", r"\Z", "a\\", "[z-a]", "(?P<n", "(?P=n)", "[[:what:]]", r"\p{what}", r"\q", "|*", "(?z)a",
        "(" * 500 + ")" * 500, "a" * 6000, "(?:a{900}){1}" * 3, r"\x{110000}",
    ],
)  # fmt: skip
def test_what_is_no_pattern_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        NamePattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){1,300}b", "((a{0,30}){0,30})b", "(.*)(.*)(.*)(.*)b"]
)
def test_a_pattern_that_would_take_for_ever_takes_a_bounded_number_of_steps(pattern: str) -> None:
    compiled = NamePattern(pattern)
    assert not compiled.matches("a" * 249)
    assert compiled.work < 249 * 2000 * 2


def test_names_cost_little_once_the_pattern_has_seen_their_like() -> None:
    compiled = NamePattern("(topic|table)-[0-9]+")
    for number in range(1000):
        assert compiled.matches(f"topic-{number}")
    assert compiled.work < 1000 * 25


pieces = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\d", "(?:)"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(pattern=pieces, names=st.lists(st.text("ab-1", max_size=6), max_size=5))
def test_random_patterns_match_what_pythons_match(pattern: str, names: list[str]) -> None:
    compiled: Any = NamePattern(pattern)
    for name in names:
        assert compiled.matches(name) == bool(re.fullmatch(pattern, name)), (pattern, name)


def test_what_is_remembered_of_a_large_pattern_is_bounded() -> None:
    compiled = NamePattern("(a?b?c?){300}x")
    chance = random.Random(1)
    for _ in range(5):
        compiled.matches("".join(chance.choices("abc", k=249)))
    remembered = sum(len(key[0]) + len(states) for key, states in compiled._seen.items())
    assert 0 < remembered <= topic_patterns._MAX_REMEMBERED


def test_a_long_name_is_matched_in_many_steps() -> None:
    compiled = NamePattern("(a?b?c?){300}")
    most = before = 0
    for _ in compiled.steps("abc" * 80):
        most, before = max(most, compiled.work - before), compiled.work
    assert 0 < most < 8_000
