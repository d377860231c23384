"""Reads what the log commands take: times, offset ranges, bytes; and how bytes are shown."""

from __future__ import annotations

import base64
import binascii
import re
import time
from datetime import UTC, datetime
from functools import lru_cache

import typer

from ottla.cli.options import Encoding

MAX_OFFSET = 2**63 - 1
_RELATIVE = re.compile(r"-(\d+)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


def parse_time(text: str | None) -> int | None:
    """Milliseconds since 1970 from ISO 8601 (UTC unless it names a zone), epoch milliseconds, or `-15m`."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    now_ms = time.time_ns() // 1_000_000
    if text == "now":
        return now_ms
    if match := _RELATIVE.fullmatch(text):
        return now_ms - int(match[1]) * _UNIT_MS[match[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write 2026-01-31T12:00:00Z, epoch milliseconds, or -15m, -2h, -1d"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_offsets(text: str | None) -> tuple[int, int]:
    """`A`, `A:`, `A:B` or `:B` as a half-open range."""
    if text is None:
        return 0, MAX_OFFSET
    start, _, end = text.partition(":")
    if not all(part == "" or (part.isascii() and part.isdigit()) for part in (start, end)) or text in (
        "",
        ":",
    ):
        raise typer.BadParameter(
            f"{text!r} is not an offset range; write 100, 100:200 or :200 (200 is left out)"
        )
    return int(start or 0), int(end) if end else MAX_OFFSET


def parse_bytes(text: str | None, encoding: Encoding) -> bytes | None:
    """A key as the user typed it, in the encoding that bytes are shown in."""
    if text is None:
        return None
    try:
        if encoding is Encoding.BASE64:
            return base64.b64decode(text, validate=True)
        if encoding is Encoding.HEX:
            return bytes.fromhex(text)
    except (binascii.Error, ValueError):
        raise typer.BadParameter(f"{text!r} is not {encoding}") from None
    return text.encode("utf-8", "surrogateescape")


def format_time(timestamp: int) -> str:
    """ISO 8601 in UTC with milliseconds; what no calendar has stays a number."""
    if timestamp < 0:
        return "-" if timestamp == -1 else str(timestamp)
    second = _format_second(timestamp // 1000)
    return f"{second}.{timestamp % 1000:03d}Z" if second else str(timestamp)


@lru_cache(maxsize=4096)
def _format_second(second: int) -> str:
    """Records of the same second come together, and calendars are slow."""
    try:
        return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return ""


def format_size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the last unit takes all")
