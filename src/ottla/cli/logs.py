"""How log lines look and which are shown: `--log-level` and `--log-format`. They go to standard error."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from ottla.escapes import visible, visible_line

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_logging(level: str, format: str) -> None:
    """Show the lines of this level and above; of the libraries that ottla uses never those for debugging them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter(_TEXT))
    root = logging.getLogger()
    root.addHandler(handler)
    shown = logging.getLogger("ottla")
    shown.setLevel(level.upper())
    root.setLevel(max(shown.level, logging.INFO))


class TextFormatter(logging.Formatter):
    """A message is one line, whatever client ids and names in it hold: nobody can write lines of his own into the log,
    or drive the terminal that shows it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = visible_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return visible(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)
