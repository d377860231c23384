"""Regular expressions of names, in the syntax of RE2, matched in time that grows with the name only.

Python's `re` tries one way after the other, and a pattern can be made so that there are more ways than time. Here all
ways are followed at once (Thompson's construction): a step of a name costs at most as much as the pattern has states,
and the sets of states that were met are remembered, as far as they do not become too many. A long name takes many
steps: `steps` lets others have their turn in between.
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.coordinator.patterns.syntax import (
    AT_END,
    AT_START,
    TOPIC_ALPHABET,
    WORD,
    WORD_EDGE,
    Chain,
    Choice,
    Edge,
    Node,
    PatternError,
    Repeat,
    parse_pattern,
)

_MAX_STATES = 2000
_MAX_REMEMBERED = 20_000  # states in the sets that are remembered: about a megabyte

_States = frozenset[int]


class NamePattern:
    """A compiled pattern for names of an alphabet, those of topics unless told; PatternError if it is not one, or too
    large."""

    def __init__(self, pattern: str, alphabet: frozenset[str] = TOPIC_ALPHABET) -> None:
        self.pattern = pattern
        self.work = 0  # steps taken so far: whoever has other things to do may want to pause
        self._chars: list[frozenset[str] | None] = []  # what a state takes; None if it takes nothing
        self._edges: list[Edge | None] = []  # what must hold where a state takes nothing
        self._next: list[list[int]] = []
        self._final = self._state()
        self._first = self._compile(parse_pattern(pattern, alphabet), self._final)
        self._seen: dict[tuple[_States, str, str], _States] = {}
        self._remembered = 0  # states in it

    def matches(self, name: str) -> bool:
        """Whether the whole name is what the pattern says."""
        steps = self.steps(name)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)

    def steps(self, name: str) -> Generator[None, None, bool]:
        """The same, and a pause after each step that was new."""
        states = self._closure([self._first], "", name[:1])
        for at, char in enumerate(name):
            if not states:
                return False
            following = name[at + 1 : at + 2]
            key = (states, char, following)
            known = self._seen.get(key)
            self.work += 1
            if known is None:
                taken = [
                    to
                    for state in states
                    if (chars := self._chars[state]) is not None and char in chars
                    for to in self._next[state]
                ]
                known = self._closure(taken, char, following)
                self.work += len(states)
                self._remember(key, known)
                yield
            states = known
        return self._final in states

    def _remember(self, key: tuple[_States, str, str], known: _States) -> None:
        self._remembered += len(key[0]) + len(known)
        if self._remembered > _MAX_REMEMBERED:
            self._seen.clear()
            self._remembered = len(key[0]) + len(known)
        self._seen[key] = known

    def _closure(self, states: list[int], before: str, after: str) -> _States:
        """All states that are reached without taking anything."""
        found: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            if state in found:
                continue
            found.add(state)
            self.work += 1
            edge = self._edges[state]
            if self._chars[state] is None and (edge is None or _holds(edge, before, after)):
                stack += self._next[state]
        return frozenset(found)

    # -- making states

    def _state(
        self, chars: frozenset[str] | None = None, edge: Edge | None = None, to: list[int] | None = None
    ) -> int:
        if len(self._chars) >= _MAX_STATES:
            raise PatternError("the pattern is too large")
        self._chars.append(chars)
        self._edges.append(edge)
        self._next.append([] if to is None else to)
        return len(self._chars) - 1

    def _compile(self, node: Node, then: int) -> int:
        """The state that begins a node which goes on to `then`."""
        if isinstance(node, Chain):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Choice):
            return self._state(to=[self._compile(choice, then) for choice in node.choices])
        if isinstance(node, Repeat):
            return self._repeat(node.inner, node.low, node.high, then)
        if isinstance(node, Edge):
            return self._state(edge=node, to=[then])
        return self._state(node, to=[then])

    def _repeat(self, inner: Node, low: int, high: int | None, then: int) -> int:
        if high is None:
            again = self._state()
            self._next[again] = [self._compile(inner, again), then]
            then = again
        else:
            end = then
            for _ in range(high - low):
                then = self._state(to=[self._compile(inner, then), end])
        for _ in range(low):
            then = self._compile(inner, then)
        return then


def _holds(edge: Edge, before: str, after: str) -> bool:
    if edge.kind == AT_START:
        return not before
    if edge.kind == AT_END:
        return not after
    is_edge = (before in WORD) != (after in WORD)
    return is_edge == (edge.kind == WORD_EDGE)
