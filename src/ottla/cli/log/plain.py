"""`ottla log show` where no terminal is: columns that awk can read, and remarks behind a #."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ottla.cli.tables import table
from ottla.cli.values import format_time
from ottla.escapes import visible_line
from ottla.logtools.listing import DataDir
from ottla.logtools.show.pictures import DAMAGE, GAP, LogPicture, SegmentPicture
from ottla.words import counted

_NOTHING = "-"


def print_plain_directory(directory: DataDir, logs: Sequence[LogPicture]) -> None:
    """One line a partition; sizes in bytes, times in ISO 8601."""
    _remark(f"{directory.path}: {counted(len(logs), 'partition')}, {counted(_size(logs), 'byte')}")
    columns = ("partition", "segments>", "bytes>", "first>", "last>", "from", "to", "gaps>", "damaged>")
    _print(columns, [_partition(log) for log in logs])
    for log in logs:
        _print_breaks(log, f"{log.name}: ")


def print_plain_log(log: LogPicture) -> None:
    """One line a segment."""
    _remark(f"{log.path}: {counted(len(log.segments), 'segment')}, {counted(log.size, 'byte')}")
    if log.topic_id:
        _remark(f"topic id {log.topic_id}")
    if log.epochs:
        _remark("leader epochs: " + epochs_text(log))
    columns = ("segment", "bytes>", "first>", "last>", "from", "to")
    counts = ("index>", "bytes/entry>", "timeindex>", "aborted>")
    rows = [
        (
            segment.file,
            segment.size,
            _or_nothing(segment.first_offset),
            _or_nothing(segment.last_offset),
            _time(segment.first_timestamp),
            _time(segment.max_timestamp),
            _or_nothing(segment.index_entries),
            _or_nothing(segment.bytes_per_index_entry),
            _or_nothing(segment.time_index_entries),
            segment.aborted_transactions,
            ",".join(_words(segment)) or _NOTHING,
        )
        for segment in log.segments
    ]
    _print((*columns, *counts, "state"), rows)
    _print_breaks(log, "")
    for entry in log.producers:
        transaction = (
            "" if entry.txn_first_offset < 0 else f", open transaction from {entry.txn_first_offset}"
        )
        _remark(
            f"producer {entry.producer_id} at offset {log.snapshot_offset}: epoch {entry.epoch}, last sequence"
            f" {entry.last_sequence}, last offset {entry.last_offset}{transaction}"
        )
    if log.other_files:
        _remark("left over: " + ", ".join(log.other_files))


def epochs_text(log: LogPicture) -> str:
    return ", ".join(f"{epoch} from offset {start}" for epoch, start in log.epochs)


def break_lines(log: LogPicture) -> list[tuple[str, str]]:
    """Each with its kind: where the log is not whole, and what could not be read."""
    lines = []
    for one in log.breaks:
        offsets = f"offset {one.first_offset}"
        if one.last_offset is None:
            offsets = "" if one.first_offset is None else f"from offset {one.first_offset} on"
        elif one.last_offset != one.first_offset:
            offsets = f"offsets {one.first_offset}..{one.last_offset}"
        where = f"{one.file}, {offsets}" if one.kind == DAMAGE else offsets
        lines.append((one.kind, f"{one.kind}: {where}: {one.meaning}"))
    return [*lines, *((DAMAGE, f"unreadable: {text}") for text in log.unreadable)]


def _words(segment: SegmentPicture) -> list[str]:
    told = (("active", segment.is_active), ("snapshot", segment.has_snapshot))
    return [word for word, is_so in told if is_so]


def _partition(log: LogPicture) -> tuple[object, ...]:
    first, last = log.offsets or (_NOTHING, _NOTHING)
    begin, end = log.times or (None, None)
    kinds = [one.kind for one in log.breaks]
    damaged = kinds.count(DAMAGE) + len(log.unreadable)
    counts = (len(log.segments), log.size, first, last)
    return (log.name, *counts, _time(begin), _time(end), kinds.count(GAP), damaged)


def _print(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in table(columns, rows)))


def _print_breaks(log: LogPicture, before: str) -> None:
    for _, text in break_lines(log):
        _remark(before + text)


def _remark(text: str) -> None:
    sys.stdout.write(f"# {visible_line(text)}\n")


def _size(logs: Sequence[LogPicture]) -> int:
    return sum(log.size for log in logs)


def _time(timestamp: int | None) -> str:
    return _NOTHING if timestamp is None else format_time(timestamp)


def _or_nothing(value: int | None) -> object:
    return _NOTHING if value is None else value
