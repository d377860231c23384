"""Bytes on the command line: separators with escapes, headers, and what stands for null."""

from __future__ import annotations

import re

import typer

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def to_bytes(text: str) -> bytes:
    """What was typed, byte for byte, even if it is not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def unescape(text: str) -> bytes:
    r"""With \n, \r, \t, \0, \\ and \xFF as the bytes they stand for."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1] == b"x" and len(code) == 3:
            return bytes.fromhex(code[1:].decode())
        if code not in _ESCAPES:
            raise typer.BadParameter(rf"{text!r}: \{code.decode()} is not one of \n \r \t \0 \\ \xFF")
        return _ESCAPES[code]

    return _ESCAPE.sub(replace, to_bytes(text))


def separator(text: str) -> bytes:
    """As `unescape`, and not empty."""
    if not text:
        raise typer.BadParameter("a separator must not be empty")
    return unescape(text)


def parse_header(text: str) -> tuple[str, bytes | None]:
    """`name=value`, or `name` alone for a null value."""
    name, equals, value = text.partition("=")
    return name, to_bytes(value) if equals else None
