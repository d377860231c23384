"""The syntax of RE2, read into a tree: what Kafka accepts as a pattern of names, and nothing else.

Not in it, because no matcher in linear time has it: back references, looking ahead or behind, possessive repeats.
A pattern is read for names of an alphabet, so a class of characters is a set of those. Names of topics have 65 of them.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass

TOPIC_ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")  # all that a topic's name may have
WORD = frozenset(string.ascii_letters + string.digits + "_")
_LETTERS, _DIGITS = frozenset(string.ascii_letters), frozenset(string.digits)

_MAX_LENGTH = 5000
_MAX_DEPTH = 150
_MAX_REPEAT = 1000  # of repeats inside each other, multiplied

AT_START, AT_END, WORD_EDGE, NOT_WORD_EDGE = "start", "end", "word", "not word"
_EDGES = {"A": AT_START, "z": AT_END, "b": WORD_EDGE, "B": NOT_WORD_EDGE}
_CLASSES = {"d": _DIGITS, "w": WORD, "s": frozenset("\t\n\f\r ")}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PRINTED = frozenset(map(chr, range(0x21, 0x7F)))
_POSIX = {
    "alnum": _LETTERS | _DIGITS, "alpha": _LETTERS, "ascii": frozenset(map(chr, range(0x80))),
    "blank": frozenset("\t "), "cntrl": frozenset([*map(chr, range(0x20)), "\x7f"]), "digit": _DIGITS,
    "graph": _PRINTED, "lower": frozenset(string.ascii_lowercase), "print": _PRINTED | {" "},
    "punct": frozenset(string.punctuation), "space": frozenset(string.whitespace),
    "upper": frozenset(string.ascii_uppercase), "word": WORD, "xdigit": frozenset(string.hexdigits),
}  # fmt: skip
_CATEGORIES = re.compile("L[ulmot]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?|C[cfos]?")
_SCRIPT = re.compile("[A-Z][A-Za-z_]+")

_COUNT = re.compile(r"\{(\d{1,4})(,(\d{1,4})?)?\}")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PROPERTY = re.compile(r"([pP])(?:([A-Z])|\{(\^?)(\w+)\})")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")


class PatternError(ValueError):
    """A pattern that is not one."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A place, not a character."""

    kind: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of them."""

    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Again and again; without end if `high` is None."""

    inner: Node
    low: int
    high: int | None


Node = Edge | Chain | Choice | Repeat | frozenset[str]  # a set is one character of it


def parse_pattern(pattern: str, alphabet: frozenset[str] = TOPIC_ALPHABET) -> Node:
    """The tree of a pattern for names of such characters; PatternError if it is not one."""
    if len(pattern) > _MAX_LENGTH:
        raise PatternError("the pattern is too long")
    parser = _Parser(pattern, alphabet)
    node = parser.choice(0)
    if parser.rest:
        raise PatternError("unexpected )")
    return node


class _Parser:
    def __init__(self, pattern: str, alphabet: frozenset[str]) -> None:
        self._pattern = pattern
        self._alphabet = alphabet
        self._at = 0
        self._folds = False  # letters stand for both cases
        self._crosses_lines = False  # a dot stands for the end of a line, too

    @property
    def rest(self) -> str:
        return self._pattern[self._at :]

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def choice(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise PatternError("groups are nested too deeply")
        folds, crosses_lines = self._folds, self._crosses_lines
        choices = [self._chain(depth)]
        while self._peek() == "|":
            self._at += 1
            choices.append(self._chain(depth))
        self._folds, self._crosses_lines = folds, crosses_lines
        return choices[0] if len(choices) == 1 else Choice(tuple(choices))

    def _chain(self, depth: int) -> Node:
        parts: list[Node] = []
        while (char := self._peek()) and char not in "|)":
            node = self._literals() if self._pattern.startswith("\\Q", self._at) else self._atom(depth)
            if node is not None:
                parts.append(self._repeated(node))
        return Chain(tuple(parts))

    def _literals(self) -> Node:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._pattern)
        return Chain(tuple(self._one(char) for char in text))

    def _repeated(self, node: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return node
        low, high = bounds
        if self._peek() == "?":  # which way is tried first makes no difference to a whole match
            self._at += 1
        if self._bounds() is not None:
            raise PatternError("invalid nested repetition operator")
        if (high is not None and high < low) or max(low, high or 0, 1) * _weight(node) > _MAX_REPEAT:
            raise PatternError("invalid repetition size")
        return Repeat(node, low, high)

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self._peek()
        if char and char in "*+?":
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        found = self._take(_COUNT)
        if found is None:
            return None
        low = int(found[1])
        return low, low if found[2] is None else None if found[3] is None else int(found[3])

    def _atom(self, depth: int) -> Node | None:
        """One thing; None if it only says how to read what follows."""
        char = self._peek()
        if char in "*+?" or (char == "{" and _COUNT.match(self._pattern, self._at)):
            raise PatternError(f"missing argument to repetition operator: {char}")
        if char == "(":
            return self._group(depth)
        self._at += 1
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char == ".":
            return self._alphabet if self._crosses_lines else self._alphabet - {"\n"}
        if char in "^$":
            return Edge(AT_START if char == "^" else AT_END)
        return self._one(char)

    def _group(self, depth: int) -> Node | None:
        if not self._pattern.startswith("(?", self._at):
            self._at += 1
        else:
            found = self._take(_GROUP)
            if found is None:
                raise PatternError("invalid or unsupported Perl syntax")
            folds, crosses_lines = self._folds, self._crosses_lines
            on, off = found["on"] or "", found["off"] or ""
            self._folds = "i" not in off and (folds or "i" in on)
            self._crosses_lines = "s" not in off and (crosses_lines or "s" in on)
            if found["end"] == ")":
                return None
            node = self._closed(depth)
            self._folds, self._crosses_lines = folds, crosses_lines
            return node
        return self._closed(depth)

    def _closed(self, depth: int) -> Node:
        node = self.choice(depth + 1)
        if self._peek() != ")":
            raise PatternError("missing closing )")
        self._at += 1
        return node

    def _one(self, char: str) -> frozenset[str]:
        return frozenset({char.lower(), char.upper()} if self._folds else {char}) & self._alphabet

    def _escape(self) -> Node:
        char = self._peek()
        if char in _EDGES and char:
            self._at += 1
            return Edge(_EDGES[char])
        if char == "C":
            self._at += 1
            return self._alphabet
        found = self._named_class()
        return self._one(self._escaped_char()) if found is None else found

    def _named_class(self) -> frozenset[str] | None:
        """`\\d`, `\\pL` and their like, after the backslash."""
        char = self._peek()
        if char and char.lower() in _CLASSES:
            self._at += 1
            found = _CLASSES[char.lower()]
            return found if char.islower() else self._alphabet - found
        named = self._take(_PROPERTY)
        if named is None:
            return None
        found = _property(named[2] or named[4], self._alphabet)
        return self._alphabet - found if (named[1] == "P") != bool(named[3]) else found

    def _escaped_char(self) -> str:
        char = self._peek()
        if found := self._take(_HEX):
            code = int(found[1] or found[2], 16)
            if code > 0x10FFFF:
                raise PatternError("invalid escape sequence")
            return chr(code)
        if found := self._take(_OCTAL):
            return chr(int(found[0], 8))
        self._at += 1
        if char in _CONTROLS and char:
            return _CONTROLS[char]
        if not char:
            raise PatternError("trailing backslash at end of expression")
        if char.isalnum():
            raise PatternError(f"invalid escape sequence: \\{char}")
        return char

    def _class(self) -> Node:
        negated = self._peek() == "^"
        self._at += negated
        found: set[str] = set()
        is_first = True
        while (char := self._peek()) != "]" or is_first:
            if not char:
                raise PatternError("missing closing ]")
            is_first = False
            found |= self._class_part()
        self._at += 1
        return self._alphabet - found if negated else frozenset(found & self._alphabet)

    def _class_part(self) -> frozenset[str]:
        if posix := self._take(_POSIX_CLASS):
            known = _POSIX.get(posix[2])
            if known is None:
                raise PatternError(f"invalid character class range: {posix[0]}")
            return self._alphabet - known if posix[1] else known
        if self._peek() == "\\":
            self._at += 1
            named = self._named_class()
            if named is not None:
                return named
            low = self._escaped_char()
        else:
            low = self._peek()
            self._at += 1
        high = low
        if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
            self._at += 1
            high = self._peek()
            self._at += 1
            if high == "\\":
                high = self._escaped_char()
        if high < low:
            raise PatternError(f"invalid character class range: {low}-{high}")
        return frozenset(
            char
            for char in self._alphabet
            if low <= char <= high
            or (self._folds and (low <= char.lower() <= high or low <= char.upper() <= high))
        )


def _property(name: str, alphabet: frozenset[str]) -> frozenset[str]:
    if _CATEGORIES.fullmatch(name):
        return frozenset(char for char in alphabet if unicodedata.category(char).startswith(name))
    if not _SCRIPT.fullmatch(name):
        raise PatternError(f"invalid character class range: \\p{{{name}}}")
    if name == "Any":
        return alphabet
    if name == "Common":
        return frozenset(char for char in alphabet if not char.isalpha())
    # The names of a script's letters begin with that of the script.
    script = name.upper().replace("_", " ")
    return frozenset(char for char in alphabet if unicodedata.name(char, "").startswith(script))


def _weight(node: Node) -> int:
    """How often the innermost repeat of a node may be done."""
    if isinstance(node, Repeat):
        return max(node.low, node.high or 0, 1) * _weight(node.inner)
    if isinstance(node, Chain):
        return max(map(_weight, node.parts), default=1)
    return max(map(_weight, node.choices)) if isinstance(node, Choice) else 1
