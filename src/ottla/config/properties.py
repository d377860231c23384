r"""Java's .properties syntax, as server.properties and Kafka's own files have it.

A line is a key, then `=`, `:` or white space, then a value. `#` and `!` begin a comment. A backslash at the
end joins the next line; elsewhere it escapes: `\t \n \r \f`, `\uXXXX`, or the character itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ottla.errors import ConfigError

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
# The key ends at the first separator that no backslash escapes; at most one = or : is part of the separator.
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file; of a key that is there twice, the last one."""
    properties = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None  # every part of the pattern may be empty
        properties[_unescape(match[1], line)] = _unescape(line[match.end() :], line)
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    joined: str | None = None
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if joined is None and (not line or line[0] in "#!"):
            continue
        line = (joined or "") + line
        if _continues(natural):
            joined = line[:-1]
        else:
            joined = None
            if line:
                yield line
    if joined:
        yield joined


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, line: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape == "u":
            raise ConfigError(f"bad \\u escape in the properties line {line!r}: it must have four hex digits")
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _CONTROL.get(escape, escape)

    # Java reads UTF-16, so a pair of escapes may stand for one character.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
