"""Whole conversations: run against a broker, and kept in a file as Kafka answered them."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conversation import scripts
from tests.conversation.talk import Answer, Talk

RECORDING = Path(__file__).with_name("recorded-kafka-4.2.0.json")
SCRIPTS = sorted(module.name for module in pkgutil.iter_modules(scripts.__path__))

NO_VERSION = -1  # of steps that are no request in a version
_VERSIONED = re.compile(r"(\w+) v(\d+): (.*)")

Answers = dict[str, Answer]  # by step


def run(script: str, port: int) -> Answers:
    """All answers of the broker at this port to one script."""
    talk = Talk("127.0.0.1", port)
    try:
        importlib.import_module(f"tests.conversation.scripts.{script}").script(talk)
    finally:
        talk.close()
    return talk.answers


def load() -> dict[str, Answers]:
    """What Kafka answered, by script."""
    found: dict[str, Answers] = {}
    for script, steps in json.loads(RECORDING.read_text(encoding="utf-8")).items():
        said = found[script] = {}
        for step, answers in steps.items():
            for version, answer in answers.items():
                for name in _names(step, version):
                    said[name] = answer
    return found


def save(answers: dict[str, Answers]) -> None:
    """One line for each step and answer, with the versions that get it: so that a change can be read."""
    parts = []
    for script, said in sorted(answers.items()):
        lines = (f"  {_json(step)}: {_json(answer)}" for step, answer in _by_step(said).items())
        parts.append(f"{_json(script)}: {{\n" + ",\n".join(lines) + "\n }")
    RECORDING.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def _by_step(said: Answers) -> dict[str, dict[str, Answer]]:
    """The answers to each step, each with the versions that get it: neighbours are put together."""
    steps: dict[str, list[tuple[int, int, Answer]]] = {}
    for name, answer in said.items():
        found = _VERSIONED.fullmatch(name)
        step, version = (f"{found[1]}: {found[3]}", int(found[2])) if found else (name, NO_VERSION)
        ranges = steps.setdefault(step, [])
        if ranges and ranges[-1][1] == version - 1 and ranges[-1][2] == answer:
            ranges[-1] = (ranges[-1][0], version, answer)
        else:
            ranges.append((version, version, answer))
    return {
        step: {f"{first}..{last}": answer for first, last, answer in ranges} for step, ranges in steps.items()
    }


def _names(step: str, versions: str) -> Iterator[str]:
    first, last = map(int, versions.split(".."))
    if first == NO_VERSION:
        yield step
    else:
        api, _, text = step.partition(": ")
        yield from (f"{api} v{version}: {text}" for version in range(first, last + 1))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
