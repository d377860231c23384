"""The record of losses beside a log (`ottla.losses`): which offsets are gone, who found that, and who has taken note.

One JSON object a line. Kafka and the loader leave the file alone. Until a loss is acknowledged every start, the metrics
and `ottla log verify` tell of it. Acknowledged ones stay on record too, because they explain holes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from ottla.storage.checkpoint import replace_file
from ottla.storage.fs import FileSystem

FILE = "ottla.losses"

# Who found it.
START = "start"  # a broker, by what the files beside the records say
RECOVERY = "recovery"  # a broker, when it read a log after a crash
REPAIR = "repair"  # `ottla log repair` gave it up


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets from `first_offset` up to but without `end_offset` that are not in the log any more."""

    found_by: str
    file: str  # where they are missing, by its name in the partition's directory
    first_offset: int
    end_offset: int
    reason: str
    position: int | None = None  # in the file
    size_bytes: int | None = None  # of what was taken out there
    batches: int | None = None  # whole ones among those bytes
    kept_in: str | None = None  # the file that has the bytes now
    found_ms: int = 0
    acknowledged_ms: int | None = None

    @property
    def offsets(self) -> int:
        return self.end_offset - self.first_offset

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_ms is not None

    def is_same(self, other: Loss) -> bool:
        """Whether both tell of the same offsets in the same place."""
        return (self.file, self.first_offset, self.end_offset) == (
            other.file,
            other.first_offset,
            other.end_offset,
        )

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "offsets": self.offsets}

    def describe(self) -> str:
        """What is gone, where and why, in one line."""
        what = f"{offsets_text(self.first_offset, self.end_offset)} missing in {self.file}"
        where = f" at position {self.position}" if self.position is not None else ""
        parts = [] if self.size_bytes is None else [_count(self.size_bytes, "byte")]
        parts += [] if self.batches is None else [_count(self.batches, "whole batch", "es")]
        size = f" ({', '.join(parts)})" if parts else ""
        kept = f"; the bytes are kept in {self.kept_in}" if self.kept_in is not None else ""
        return f"{what}{where}{size}: {self.reason}{kept}"


class Record(NamedTuple):
    """What the file says."""

    losses: list[Loss]
    unreadable: list[bytes]  # lines that are damaged, as they are

    @property
    def open(self) -> list[Loss]:
        """Those that nobody has acknowledged."""
        return [loss for loss in self.losses if not loss.is_acknowledged]


def offsets_text(first_offset: int, end_offset: int) -> str:
    count = end_offset - first_offset
    if count == 1:
        return f"1 offset ({first_offset})"
    return f"{count} offsets ({first_offset} to {end_offset - 1})" if count else "no offset"


def count_offsets(losses: Iterable[Loss]) -> int:
    """How many offsets are lost, each counted once."""
    count, done = 0, 0
    for loss in sorted(losses, key=lambda loss: loss.first_offset):
        count += max(0, loss.end_offset - max(loss.first_offset, done))
        done = max(done, loss.end_offset)
    return count


def read(fs: FileSystem, directory: str) -> Record:
    """What is on record in a partition's directory; nothing, where there is no file."""
    path = f"{directory}/{FILE}"
    if not fs.exists(path):
        return Record([], [])
    record = Record([], [])
    data = fs.read_bytes(path)
    for line in data.split(b"\n"):
        if line:
            loss = _parse(line)
            if loss is None:
                record.unreadable.append(line)
            else:
                record.losses.append(loss)
    return record


def note(fs: FileSystem, directory: str, losses: Iterable[Loss]) -> list[Loss]:
    """Put losses on record, durably; those that were not open there before. To be done before anything is made to fit.

    One that was acknowledged may happen again: offsets of a log's lost end are given to new records.
    """
    known = read(fs, directory)
    news: list[Loss] = []
    for loss in losses:
        if not any(loss.is_same(other) for other in (*known.open, *news)):
            news.append(loss)
    if news:
        _write(fs, directory, [*known.losses, *news], known.unreadable)
    return news


def begin(fs: FileSystem, directory: str) -> None:
    """From now on every hole in the log is on record here, or is news."""
    if not fs.exists(f"{directory}/{FILE}"):
        _write(fs, directory, [], [])


def carry(fs: FileSystem, directory: str, target: str) -> None:
    """Take the record along, when a log moves to another directory."""
    if fs.exists(f"{directory}/{FILE}"):
        replace_file(fs, f"{target}/{FILE}", fs.read_bytes(f"{directory}/{FILE}"))


def acknowledge(fs: FileSystem, directory: str, now_ms: int) -> list[Loss]:
    """Somebody knows of everything on record; what was news. Damaged lines go: they were seen, and say nothing more."""
    known = read(fs, directory)
    if known.open or known.unreadable:
        losses = [
            loss if loss.is_acknowledged else replace(loss, acknowledged_ms=now_ms) for loss in known.losses
        ]
        _write(fs, directory, losses, [])
    return known.open


def uncovered(first_offset: int, end_offset: int, known: Iterable[Loss]) -> list[tuple[int, int]]:
    """The parts of a range of offsets of which nothing is on record."""
    parts, at = [], first_offset
    for loss in sorted(known, key=lambda loss: loss.first_offset):
        if at < loss.first_offset < end_offset:
            parts.append((at, loss.first_offset))
        if loss.first_offset < end_offset:
            at = max(at, loss.end_offset)
    if at < end_offset:
        parts.append((at, end_offset))
    return parts


def _write(fs: FileSystem, directory: str, losses: Iterable[Loss], unreadable: list[bytes]) -> None:
    lines = [*(json.dumps(loss.as_json()).encode() for loss in losses), *unreadable]
    replace_file(fs, f"{directory}/{FILE}", b"".join(line + b"\n" for line in lines))


_NUMBERS = ("first_offset", "end_offset", "found_ms")
_OPTIONAL_NUMBERS = ("position", "size_bytes", "batches", "acknowledged_ms")
_TEXTS = ("found_by", "file", "reason")


def _parse(line: bytes) -> Loss | None:
    """None, if the line is not one that was written here."""
    try:
        fields = json.loads(line)
        count = fields.pop("offsets")
        loss = Loss(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    numbers = [getattr(loss, name) for name in _NUMBERS]
    numbers += [value for name in _OPTIONAL_NUMBERS if (value := getattr(loss, name)) is not None]
    texts = [getattr(loss, name) for name in _TEXTS] + ([] if loss.kept_in is None else [loss.kept_in])
    if not all(type(value) is int and value >= 0 for value in numbers) or not all(
        isinstance(text, str) for text in texts
    ):
        return None
    return loss if loss.first_offset <= loss.end_offset and count == loss.offsets else None


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"
