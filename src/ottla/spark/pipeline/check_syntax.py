"""A small part of SQL's expressions, read into trees: what most checks are written in.

    or, and, not, = == <> != < <= > >=, between, in, is [not] null, like, rlike, + - * /, numbers, 'texts', true,
    false, null, columns (a.b for a field of a struct), length lower upper trim abs coalesce

What is beyond it raises Unsupported, and Spark evaluates the check instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d*|\.\d+|\d+)(?![\w.])|(?P<text>'[^'\\]*'(?!'))|(?P<name>[A-Za-z_]\w*|`[^`]+`)"
    r"|(?P<sign><=|>=|<>|!=|==|[-+*/=<>(),.]))"
)
_COMPARING = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
FUNCTIONS = ("length", "lower", "upper", "trim", "abs", "coalesce")
_WORDS = {"or", "and", "not", "between", "in", "is", "null", "like", "rlike", "true", "false", "case", "when"}


class Unsupported(Exception):  # noqa: N818 - not an error: another way is taken
    """The check is beyond this part of SQL."""


@dataclass(frozen=True)
class Literal:
    value: Any


@dataclass(frozen=True)
class Column:
    path: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Node, ...]


Node = Literal | Column | Call


def parse(text: str) -> Node:
    reader = _Reader(text)
    tree = reader.disjunction()
    if reader.token:
        raise Unsupported(f"{reader.token!r} is not expected in {text!r}")
    return tree


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise Unsupported(f"cannot read {text[position:]!r}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._next = 0

    @property
    def token(self) -> str:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else ""

    def _word(self) -> str:
        is_name = self._next < len(self._tokens) and self._tokens[self._next][0] == "name"
        return self.token.lower() if is_name else ""

    def _accept(self, *words: str) -> str:
        found = self._word() or self.token
        if found and found in words:
            self._next += 1
            return found
        return ""

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise Unsupported(f"{word!r} is expected, not {self.token or 'the end'!r}")

    def disjunction(self) -> Node:
        tree = self._conjunction()
        while self._accept("or"):
            tree = Call("or", (tree, self._conjunction()))
        return tree

    def _conjunction(self) -> Node:
        tree = self._negation()
        while self._accept("and"):
            tree = Call("and", (tree, self._negation()))
        return tree

    def _negation(self) -> Node:
        if self._accept("not"):
            return Call("not", (self._negation(),))
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._sum()
        if sign := self._accept(*_COMPARING):
            return Call(_COMPARING[sign], (left, self._sum()))
        if self._accept("is"):
            negated = self._accept("not")
            self._expect("null")
            tree: Node = Call("is null", (left,))
            return Call("not", (tree,)) if negated else tree
        negated = self._accept("not")
        tree = self._predicate(left)
        return Call("not", (tree,)) if negated else tree

    def _predicate(self, left: Node) -> Node:
        if self._accept("between"):
            low = self._sum()
            self._expect("and")
            return Call("and", (Call(">=", (left, low)), Call("<=", (left, self._sum()))))
        if self._accept("in"):
            self._expect("(")
            tree: Node = Call("=", (left, self._sum()))
            while self._accept(","):
                tree = Call("or", (tree, Call("=", (left, self._sum()))))
            self._expect(")")
            return tree
        if word := self._accept("like", "rlike"):
            pattern = self._sum()
            if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
                raise Unsupported(f"{word} needs a text")
            return Call(word, (left, pattern))
        return left

    def _sum(self) -> Node:
        tree = self._product()
        while sign := self._accept("+", "-"):
            tree = Call(sign, (tree, self._product()))
        return tree

    def _product(self) -> Node:
        tree = self._unary()
        while sign := self._accept("*", "/"):
            tree = Call(sign, (tree, self._unary()))
        return tree

    def _unary(self) -> Node:
        if self._accept("-"):
            return Call("-", (Literal(0), self._unary()))
        return self._atom()

    def _atom(self) -> Node:
        if self._accept("("):
            tree = self.disjunction()
            self._expect(")")
            return tree
        if self._next >= len(self._tokens):
            raise Unsupported("the check ends too early")
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return Literal(float(text) if "." in text else int(text))
        if kind == "text":
            return Literal(text[1:-1])
        if kind != "name":
            raise Unsupported(f"{text!r} is not expected")
        word = text.lower()
        if word in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[word])
        if self.token == "(":
            return self._call(word)
        if word in _WORDS:
            raise Unsupported(f"{text!r} is not expected")
        return self._column(text)

    def _call(self, name: str) -> Node:
        if name not in FUNCTIONS:
            raise Unsupported(f"the function {name}")
        self._expect("(")
        arguments = [self.disjunction()]
        while self._accept(","):
            arguments.append(self.disjunction())
        self._expect(")")
        if name != "coalesce" and len(arguments) != 1:
            raise Unsupported(f"{name} with {len(arguments)} arguments")
        return Call(name, tuple(arguments))

    def _column(self, first: str) -> Node:
        path = [first.strip("`")]
        while self._accept("."):
            kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
            if kind != "name":
                raise Unsupported("a field's name is expected behind the dot")
            self._next += 1
            path.append(text.strip("`"))
        return Column(tuple(path))
