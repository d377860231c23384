"""Numbers with their nouns, so that nobody reads "1 records"."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 record`, `12,000 records`; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
