"""Where two brokers differ: one line for each field of each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conversation.recording import Answers

ABSENT = "(default)"  # a field that has its default is left out of an answer


class Difference(NamedTuple):
    """One field that is not the same."""

    script: str
    step: str  # the API, its version, and what was asked
    path: str  # of the field; empty if the answers have nothing in common
    kafka: str
    ottla: str

    def __str__(self) -> str:
        return f"{self.script} / {self.step}\n    {self.path}: Kafka {self.kafka}, ottla {self.ottla}"


def differences(script: str, kafka: Answers, ottla: Answers) -> Iterator[Difference]:
    """What is not the same in the answers to one script."""
    for step in kafka.keys() | ottla.keys():
        for path, left, right in _fields("", kafka.get(step, ABSENT), ottla.get(step, ABSENT)):
            yield Difference(script, step, path, _text(left), _text(right))


def _fields(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in [*left, *(name for name in right if name not in left)]:
            inner = f"{path}.{name}" if path else name
            yield from _fields(inner, left.get(name, ABSENT), right.get(name, ABSENT))
    elif left != right:
        yield path, left, right


def _text(value: Any) -> str:
    return value if value is ABSENT else json.dumps(value, ensure_ascii=False)
