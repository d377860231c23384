"""Escapes for what a terminal would obey.

What others wrote (records, names of groups, error texts) can hold characters that move the cursor, change the
terminal's title, or turn the reading direction round. On a terminal they are shown as escapes; a file or a pipe gets
records as they are.
"""

from __future__ import annotations

import re

# Controls of ASCII and of Latin-1, marks that turn text round or separate lines, tags, and halves of characters.
# Tabs and line ends do no harm.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_OBEYED_OR_BREAKING = re.compile(f"[\t\n]|{_OBEYED.pattern}")


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
