"""Pieces of the coordinators' records: strings and lengths, as they are written in old and in flexible versions."""

from __future__ import annotations

from struct import Struct

INT16, INT32, INT64 = Struct(">h"), Struct(">i"), Struct(">q")
NO_TAGS = b"\0"


def string(text: str | None) -> bytes:
    """With a length of 16 bits."""
    if text is None:
        return INT16.pack(-1)
    data = text.encode()
    return INT16.pack(len(data)) + data


def varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def compact(data: bytes | None) -> bytes:
    """As flexible versions have it: a length that is one too large, 0 for nothing."""
    return b"\0" if data is None else varint(len(data) + 1) + data


def compact_string(text: str | None) -> bytes:
    return compact(None if text is None else text.encode())
