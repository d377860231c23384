"""How log lines look and which are shown: `--log-level` and `--log-format`. They go to standard error."""

from __future__ import annotations

import json
import logging
import sys

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_logging(level: str, format: str) -> None:
    """Show the lines of this level and above; of the libraries that ottla uses never those for debugging them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else logging.Formatter(_TEXT))
    root = logging.getLogger()
    root.addHandler(handler)
    shown = logging.getLogger("ottla")
    shown.setLevel(level.upper())
    root.setLevel(max(shown.level, logging.INFO))


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
