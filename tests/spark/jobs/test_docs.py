"""The page on maintenance: its commands are ones that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from ottla.cli.spark.commands import app

PAGE = Path(__file__).parents[3] / "docs/spark-maintenance.md"
COMMANDS = re.findall(r"^    ottla spark (.*?)(?:\s+#.*)?$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_example_is_understood(line: str) -> None:
    name, *arguments = shlex.split(line)
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    command.make_context(name, arguments)


def test_every_command_has_an_example() -> None:
    named = {shlex.split(line)[0] for line in COMMANDS}
    assert named == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
