"""The scripted conversation with a real Kafka 4.2: the recording is what it says, and ottla says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversation import brokers, known, recording
from tests.conversation.compare import differences

ATTEMPTS = 4


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[str, recording.Answers]:
    """What Kafka says. It does much of its work after it has answered, so what sounds new is asked of another one."""
    recorded = recording.load()
    said: dict[str, recording.Answers] = {}
    for attempts_left in reversed(range(ATTEMPTS)):
        again = [script for script in recording.SCRIPTS if said.get(script) != recorded.get(script)]
        if not again:
            break
        with brokers.kafka(tmp_path_factory.mktemp("kafka")) as port:
            for script in again:
                try:
                    said[script] = recording.run(script, port)
                except (AssertionError, TimeoutError):  # a moment was missed that others may not miss
                    if not attempts_left:
                        raise
    return said


def test_kafka_still_says_what_was_recorded(kafka: dict[str, recording.Answers]) -> None:
    recorded = recording.load()
    changed = [
        f"{script} / {step}"
        for script, said in kafka.items()
        for step, answer in said.items()
        if recorded[script].get(step) != answer
    ]
    assert not changed, "record anew with: python -m tests.conversation"
    assert {script: set(said) for script, said in kafka.items()} == {
        script: set(said) for script, said in recorded.items()
    }


@pytest.mark.parametrize("script", recording.SCRIPTS)
def test_ottla_says_the_same(script: str, kafka: dict[str, recording.Answers], tmp_path: Path) -> None:
    with brokers.ottla(tmp_path) as port:
        found = differences(script, kafka[script], recording.run(script, port))
    unknown = [str(difference) for difference in found if known.explained(difference) is None]
    assert not unknown, "\n".join(unknown)
