"""ottla answers as Kafka does: the recorded conversation is had again, and all that differs is explained."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ottla.api.registry import APIS
from tests.conversation import brokers, known, page, recording
from tests.conversation.compare import Difference, differences
from tests.conversation.talk import CLOSED

OLD = re.compile(r"(Produce v[0-2]|Fetch v[0-3]): ")  # what Kafka closes the connection for


@pytest.mark.timeout(600)
def test_all_that_differs_from_kafka_is_known_and_all_that_is_known_differs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = recording.load()
    found: list[Difference] = []
    for script in recording.SCRIPTS:
        with brokers.ottla(tmp_path / script) as port:
            said = recording.run(script, port)
        found += differences(script, kafka[script], said)
        closed = [step for step, answer in said.items() if answer == CLOSED and OLD.match(step)]
        assert not closed, "Kafka does the same, but for another reason"
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    unknown = [str(difference) for difference in found if known.explained(difference) is None]
    assert not unknown, "\n".join(unknown)
    unneeded = [entry.title for entry in known.ENTRIES if not any(map(entry.covers, found))]
    assert not unneeded


def test_the_page_tells_of_every_known_difference() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run: make docs"


def test_every_version_of_every_api_is_asked() -> None:
    asked = {step.partition(":")[0] for said in recording.load().values() for step in said}
    served = {
        f"{api.name} v{version}"
        for api in APIS.values()
        for version in range(api.min_version, api.max_version + 1)
    }
    assert served - asked == set()


def test_a_difference_that_nobody_explains_is_seen() -> None:
    kafka: recording.Answers = {"Metadata v9: x": {"topics": {"t": {"error_code": 3}}, "same": 1}}
    ottla: recording.Answers = {"Metadata v9: x": {"topics": {"t": {}}, "same": 1}}
    found = list(differences("metadata", kafka, ottla))
    assert found == [Difference("metadata", "Metadata v9: x", "topics.t.error_code", "3", "(default)")]
    assert known.explained(found[0]) is None
