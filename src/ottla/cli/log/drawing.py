"""Segments as bars on a common scale of times or offsets, in the columns of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from ottla.cli.terminal import can_draw, paint
from ottla.logtools.show.pictures import DAMAGE, Break, LogPicture, SegmentPicture

_DAY_S = 86_400
# By what a cell shows: how it is drawn, how it is drawn in ASCII, and its colour.
_CELLS = {
    "": (" ", " ", "dim"),
    "segment": ("█", "#", "cyan"),
    "next segment": ("▓", "=", "blue"),
    "active": ("█", "#", "green"),
    "gap": ("╳", "x", "yellow"),
    "damage": ("╳", "!", "red"),
}


class By(StrEnum):
    """What bars are long by."""

    TIME = "time"
    OFFSET = "offset"


class Part(NamedTuple):
    """From and to where a bar shows something."""

    first: int
    last: int
    what: str


class Scale:
    """Says which columns of a bar stand for which times or offsets."""

    def __init__(self, by: By, first: int, last: int, width: int) -> None:
        self.by = by
        self._first = first
        self._last = last
        self._width = width

    def bar(self, parts: Iterable[Part]) -> str:
        """The parts at their places; a later one lies above an earlier one, and each takes a column at least."""
        cells = [""] * self._width
        for part in parts:
            start, end = self._column(part.first), self._column(part.last)
            cells[start : end + 1] = [part.what] * (end + 1 - start)
        shape = 0 if can_draw() else 1
        return "".join(
            paint(_CELLS[what][shape] * len(list(same)), _CELLS[what][2]) for what, same in groupby(cells)
        ).rstrip()

    def axis(self) -> str:
        """What the ends stand for, at the ends."""
        left, right = self._label(self._first), self._label(self._last)
        return left + right.rjust(max(self._width - len(left), len(right) + 1))

    def _column(self, value: int) -> int:
        place = (value - self._first) * self._width // (self._last - self._first + 1)
        return min(max(place, 0), self._width - 1)

    def _label(self, value: int) -> str:
        if self.by is By.OFFSET:
            return f"{value:,}"
        # The line above the bars has the whole dates.
        span_s = (self._last - self._first) // 1000
        form = "%H:%M:%S" if span_s < _DAY_S else "%m-%d %H:%M" if span_s < 365 * _DAY_S else "%Y-%m-%d"
        return moment(value, form)


def moment(timestamp: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """In UTC; what no calendar has stays a number."""
    try:
        return datetime.fromtimestamp(timestamp // 1000, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return str(timestamp)


def scale_for(by: By | None, logs: Sequence[LogPicture], width: int) -> Scale | None:
    """For all logs together: by time where times are known, unless offsets are asked for."""
    if by is not By.OFFSET:
        times = [log.times for log in logs if log.times is not None]
        if times:
            return Scale(By.TIME, min(first for first, _ in times), max(last for _, last in times), width)
    offsets = [log.offsets for log in logs if log.offsets is not None]
    missing = [one for log in logs for one in log.breaks if one.first_offset is not None]
    if not offsets:
        return None
    ends = [last for _, last in offsets] + [one.last_offset or one.first_offset or 0 for one in missing]
    return Scale(By.OFFSET, min(first for first, _ in offsets), max(ends), width)


def segment_part(by: By, segment: SegmentPicture, number: int = 0) -> list[Part]:
    """A segment that is not empty; of two that follow each other, one is drawn otherwise."""
    ends = (
        (segment.first_timestamp, segment.max_timestamp)
        if by is By.TIME
        else (segment.first_offset, segment.last_offset)
    )
    what = "active" if segment.is_active else "next segment" if number % 2 else "segment"
    first, last = ends
    return [] if first is None or last is None else [Part(first, last, what)]


def break_part(by: By, one: Break) -> list[Part]:
    first, last = (
        (one.first_timestamp, one.last_timestamp) if by is By.TIME else (one.first_offset, one.last_offset)
    )
    if first is None:
        return []
    return [
        Part(
            first, max(first, last if last is not None else first), "damage" if one.kind == DAMAGE else "gap"
        )
    ]
