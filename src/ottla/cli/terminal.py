"""The terminal on stdout: whether there is one, how wide it is, whether it has colours, and what may reach it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from ottla.escapes import visible

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def is_terminal(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty()


def width() -> int | None:
    """The columns of the terminal on stdout; None where there is none, and nothing needs to fit."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def can_draw() -> bool:
    """Whether stdout takes more than ASCII."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def has_colour() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """In a colour, where there are colours."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if text.strip() and has_colour() else text


def say(text: str) -> None:
    """A line on stdout that holds what others wrote."""
    print(visible(text) if is_terminal() else text)
