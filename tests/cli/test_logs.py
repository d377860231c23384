"""Log lines: one for each message, whatever a client has put into it."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from ottla.cli.logs import JsonFormatter, TextFormatter

HOSTILE = "x\n2026-01-01 ERROR ottla: all is lost\r\x1b[2J\u202e"


def record(text: str, *, error: Exception | None = None) -> logging.LogRecord:
    info = None
    if error is not None:
        try:
            raise error
        except type(error):
            info = sys.exc_info()
    return logging.LogRecord(
        "ottla", logging.INFO, "", 0, "the transaction of %s has timed out", (text,), info
    )


@pytest.mark.parametrize("formatter", [TextFormatter("%(levelname)s %(message)s"), JsonFormatter()])
def test_a_name_with_line_ends_and_escapes_stays_on_its_line(formatter: logging.Formatter) -> None:
    line = formatter.format(record(HOSTILE))
    assert line.isprintable()


def test_json_lines_keep_what_was_said() -> None:
    assert (
        json.loads(JsonFormatter().format(record(HOSTILE)))["message"]
        == f"the transaction of {HOSTILE} has timed out"
    )


def test_a_traceback_has_lines_and_no_escapes() -> None:
    text = TextFormatter("%(message)s").format(record("x", error=ValueError(HOSTILE)))
    assert "Traceback" in text
    assert all(line.isprintable() for line in text.splitlines())
