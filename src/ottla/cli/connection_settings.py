"""Which cluster the client commands talk to: the address where none is given, and what -X says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def parse_settings(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What -X says, as pairs."""
    for text in given:
        if text.startswith("@"):
            lines = (line.strip() for line in Path(text[1:]).read_text(encoding="utf-8").splitlines())
            yield from (parse_pair(line, "-X") for line in lines if line and not line.startswith("#"))
        else:
            yield parse_pair(text, "-X")


def parse_pair(text: str, option: str) -> tuple[str, str]:
    """`key=value` in two."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise typer.BadParameter(f"{option} {text!r}: write KEY=VALUE")
    return key.strip(), value.strip()
