"""What may reach a terminal, and how wide and colourful it is.

What others wrote (records, names of groups, error texts) can hold bytes that a terminal obeys: they move the cursor,
change its title, or turn the reading direction round. On a terminal they are shown as escapes; a file or a pipe gets
them as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

# Controls of ASCII and of Latin-1, marks that turn text round or separate lines, tags, and halves of characters.
# Tabs and line ends do no harm.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_OBEYED_OR_BREAKING = re.compile(f"[\t\n]|{_OBEYED.pattern}")

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def visible(text: str) -> str:
    r"""With `\x1b` for what a terminal would obey; line ends and tabs stay."""
    return _OBEYED.sub(_escape, text)


def visible_line(text: str) -> str:
    r"""As `visible`, and on one line."""
    return _OBEYED_OR_BREAKING.sub(_escape, text)


def visible_bytes(data: bytes) -> bytes:
    r"""As `visible`, for bytes that may not be UTF-8."""
    return visible(data.decode("utf-8", "backslashreplace")).encode()


def visible_json(text: str) -> str:
    """A JSON text that means the same, without what a terminal would obey."""
    return _OBEYED.sub(_json_escape, text)


def _escape(match: re.Match[str]) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(match[0])
    code = ord(match[0])
    return named or (
        f"\\x{code:02x}" if code < 0x100 else match[0].encode("ascii", "backslashreplace").decode()
    )


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


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
