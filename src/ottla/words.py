"""Numbers with their nouns, so that nobody reads "1 records"."""

from __future__ import annotations


def noun(number: int, word: str, plural: str = "") -> str:
    """The word that follows a number; `plural` where an s is not enough."""
    return word if number == 1 else plural or word + "s"


def counted(number: int, word: str, plural: str = "") -> str:
    """`1 record`, `12,000 records`."""
    return f"{number:,} {noun(number, word, plural)}"
