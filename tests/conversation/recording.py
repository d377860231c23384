"""Whole conversations: run against a broker, and kept in a file as Kafka answered them."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

from tests.conversation import scripts
from tests.conversation.talk import Answer, Talk

RECORDING = Path(__file__).with_name("recorded-kafka-4.2.0.json")
SCRIPTS = sorted(module.name for module in pkgutil.iter_modules(scripts.__path__))

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
    loaded: dict[str, Answers] = json.loads(RECORDING.read_text(encoding="utf-8"))
    return loaded


def save(answers: dict[str, Answers]) -> None:
    """One line for each answer, so that a change can be read."""
    parts = []
    for script, said in sorted(answers.items()):
        lines = (f"  {_json(step)}: {_json(answer)}" for step, answer in said.items())
        parts.append(f"{_json(script)}: {{\n" + ",\n".join(lines) + "\n }")
    RECORDING.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
