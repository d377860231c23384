"""Writes docs/compatibility.md from the table of known differences: `make docs`."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.conversation import known, recording, suites

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"

_INTRODUCTION = """\
# Compatibility with Apache Kafka

<!-- Made by `make docs` from tests/conversation; a test fails when this page is out of date. -->

A scripted conversation of {requests:,} requests, in every version of every API that ottla serves, was had with Apache
Kafka 4.2.0 and its answers were recorded. `make test` has the same conversation with ottla and compares every field of
every answer; `make interop` has it with both, and checks that Kafka still says what was recorded. All that differs is
on this page: a difference that is not here fails the tests, and so does an entry here that nothing differs by.

Some things differ between any two brokers and are compared by their role, not their value: ids of topics, producers,
sessions and clusters, ports, directories, free space, the time of day, and the texts of error messages (there or not
there). The order of topics and partitions inside an answer is not compared.
"""

_VERSIONS = """\
## What is compared

"""


def page() -> str:
    answers = recording.load()
    parts = [_INTRODUCTION.format(requests=sum(map(len, answers.values())))]
    for section, entries in known.SECTIONS.items():
        rows = "".join(
            f"| {entry.title} | {entry.kafka_does} | {entry.ottla_does} | {entry.reason} |\n"
            for entry in entries
        )
        parts.append(f"## {section}\n\n| | Kafka 4.2 | ottla | why |\n| --- | --- | --- | --- |\n{rows}")
    parts += [suites.section(), _VERSIONS + _table(answers)]
    return "\n".join(parts)


def _table(answers: dict[str, recording.Answers]) -> str:
    versions: dict[str, list[int]] = defaultdict(list)
    for said in answers.values():
        for step in said:
            if found := re.match(r"(\w+) v(\d+): ", step):
                versions[found[1]].append(int(found[2]))
    rows = (
        f"| {api} | {min(found)} to {max(found)} | {len(found)} |\n"
        for api, found in sorted(versions.items())
    )
    return "| API | versions | requests |\n| --- | --- | --- |\n" + "".join(rows)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
