"""`ottla log show` for people: what matters first, bars to scale, and no more than the terminal is wide."""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from ottla.cli.log.drawing import By, Part, Scale, break_part, moment, scale_for, segment_part
from ottla.cli.log.plain import break_lines, epochs_text
from ottla.cli.tables import Column, display_width, print_table, table
from ottla.cli.terminal import paint
from ottla.cli.values import format_size
from ottla.escapes import visible_line
from ottla.logtools.listing import DataDir
from ottla.logtools.show.pictures import GAP, Break, LogPicture, SegmentPicture
from ottla.storage import layout
from ottla.words import counted

_LEAST_BAR, _WIDEST_BAR = 24, 100  # columns; and two fifths of the terminal, if that is more
_MAX_PRODUCERS = 20
_MAX_BREAKS = 20
_COLOURS = {GAP: "yellow"}


def print_directory(directory: DataDir, logs: Sequence[LogPicture], by: By | None, width: int) -> None:
    """Totals, a line and a bar for each partition that holds something, and the empty ones in brief."""
    empty = [log for log in logs if log.offsets is None and not log.breaks and not log.unreadable]
    shown = [log for log in logs if log not in empty]
    _paragraph(directory.path, width, "bold")
    for text in _directory_texts(logs):
        _paragraph(text, width)
    if shown:
        columns = ("partition", Column("segments", right=True, rank=2), "size>", "offsets>")
        rows = [_partition_row(log) for log in shown]
        _print_with_bars((*columns, Column("last record", rank=1)), rows, _log_parts(shown), shown, by, width)
    breaks = [(kind, f"{log.name}: {text}") for log in shown for kind, text in break_lines(log)]
    _print_breaks(breaks, f"ottla log verify {directory.path}", width)
    if empty:
        _line()
        _paragraph(f"{counted(len(empty), 'empty partition')}: {_names(empty)}", width, "dim")


def print_log(log: LogPicture, by: By | None, width: int) -> None:
    """Totals, a line and a bar for each segment and for what is missing between them, then the producers."""
    _paragraph(log.path, width, "bold")
    held = "empty" if log.offsets is None else f"offsets {log.offsets[0]}..{log.offsets[1]}"
    _paragraph(f"{counted(len(log.segments), 'segment')}, {format_size(log.size)}, {held}", width)
    if log.times is not None:
        _paragraph(_period(*log.times), width)
    if log.topic_id:
        _paragraph(f"topic id {log.topic_id}", width, "dim")
    if log.epochs:
        _paragraph(f"leader epochs: {epochs_text(log)}", width, "dim")
    lines: list[SegmentPicture | Break] = [*log.segments, *(one for one in log.breaks if one.kind == GAP)]
    lines.sort(key=_place)
    if lines:
        columns = (
            "segment>",
            "size>",
            "offsets>",
            Column("from", rank=3),
            Column("to", rank=2),
            Column("index", right=True, rank=5),
            Column("bytes/entry", right=True, rank=6),
            Column("time index", right=True, rank=7),
            Column("aborted", right=True, rank=4),
            Column("", rank=1),
        )
        rows = [_gap_row(one) if isinstance(one, Break) else _segment_row(one) for one in lines]
        _print_with_bars(columns, rows, _line_parts(lines, log.breaks), [log], by, width)
    _print_breaks(break_lines(log), f"ottla log verify {log.path}", width)
    if log.producers:
        _print_producers(log)
    if log.other_files:
        _line()
        _paragraph("left over: " + ", ".join(log.other_files), width, "dim")


Parts = Sequence[dict[By, list[Part]]]


def _log_parts(logs: Sequence[LogPicture]) -> Parts:
    return [
        {
            by: [
                part
                for number, segment in enumerate(log.segments)
                for part in segment_part(by, segment, number)
            ]
            + [part for one in log.breaks for part in break_part(by, one)]
            for by in By
        }
        for log in logs
    ]


def _line_parts(lines: Sequence[SegmentPicture | Break], breaks: Sequence[Break]) -> Parts:
    return [
        {
            by: break_part(by, line)
            if isinstance(line, Break)
            else segment_part(by, line)
            + [
                part
                for one in breaks
                if one.kind != GAP and one.file == line.file
                for part in break_part(by, one)
            ]
            for by in By
        }
        for line in lines
    ]


def _print_with_bars(
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[object]],
    parts: Parts,
    logs: Sequence[LogPicture],
    by: By | None,
    width: int,
) -> None:
    lines = table(columns, rows, width=max(width - 2 - max(_LEAST_BAR, width * 2 // 5), 0))
    widest = max(map(display_width, lines))
    scale = scale_for(by, logs, max(1, min(width - widest - 2, _WIDEST_BAR)))
    _line()
    _line(paint(_beside(lines[0], widest, scale.axis() if scale else ""), "dim"))
    for line, by_kind in zip(lines[1:], parts, strict=True):
        _line(_beside(line, widest, _bar(scale, by_kind)))


def _bar(scale: Scale | None, parts: dict[By, list[Part]]) -> str:
    return scale.bar(parts[scale.by]) if scale else ""


def _beside(line: str, width: int, bar: str) -> str:
    return f"{line}{' ' * (width - display_width(line))}  {bar}".rstrip()


def _directory_texts(logs: Sequence[LogPicture]) -> list[str]:
    times = [log.times for log in logs if log.times is not None]
    segments = sum(len(log.segments) for log in logs)
    facts = (
        f"{counted(len(logs), 'partition')} of {counted(len({_topic(log) for log in logs}), 'topic')}",
        f"{format_size(sum(log.size for log in logs))} in {counted(segments, 'segment')}",
        counted(sum(log.held for log in logs), "offset"),
    )
    texts = [", ".join(facts)]
    if times:
        texts.append(_period(min(first for first, _ in times), max(last for _, last in times)))
    broken = sum(1 for log in logs if log.breaks or log.unreadable)
    if broken:
        texts.append(f"{counted(broken, 'partition')} with gaps or damage")
    return texts


def _period(first: int, last: int) -> str:
    return f"{moment(first)} to {moment(last)} UTC"


def _partition_row(log: LogPicture) -> tuple[object, ...]:
    offsets = "-" if log.offsets is None else f"{log.offsets[0]}..{log.offsets[1]}"
    last = "-" if log.times is None else moment(log.times[1])
    return log.name, len(log.segments), format_size(log.size), offsets, last


def _segment_row(segment: SegmentPicture) -> tuple[object, ...]:
    offsets = "-" if segment.first_offset is None else f"{segment.first_offset}..{segment.last_offset}"
    return (
        segment.base_offset,
        format_size(segment.size),
        offsets,
        _time(segment.first_timestamp),
        _time(segment.max_timestamp),
        *(
            "-" if number is None else number
            for number in (segment.index_entries, segment.bytes_per_index_entry, segment.time_index_entries)
        ),
        segment.aborted_transactions,
        "active" if segment.is_active else "",
    )


def _gap_row(gap: Break) -> tuple[object, ...]:
    return "gap", "", f"{gap.first_offset}..{gap.last_offset}", *[""] * 7


def _place(line: SegmentPicture | Break) -> tuple[int, int]:
    """In the order of offsets; a gap before the segment that follows it."""
    if isinstance(line, Break):
        return line.first_offset or 0, 0
    return line.base_offset if line.first_offset is None else line.first_offset, 1


def _print_breaks(breaks: Sequence[tuple[str, str]], more: str, width: int) -> None:
    if not breaks:
        return
    _line()
    for kind, text in breaks[:_MAX_BREAKS]:
        _paragraph(text, width, _COLOURS.get(kind, "red"))
    if len(breaks) > _MAX_BREAKS:
        _paragraph(f"and {counted(len(breaks) - _MAX_BREAKS, 'more', 'more')}", width)
    _paragraph(f"`{more}` checks every byte", width, "dim")


def _print_producers(log: LogPicture) -> None:
    _line()
    _line(f"{counted(len(log.producers), 'producer')} at offset {log.snapshot_offset}")
    rows = [
        (
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            _time(entry.timestamp),
            "" if entry.txn_first_offset < 0 else f"open transaction from {entry.txn_first_offset}",
        )
        for entry in log.producers[:_MAX_PRODUCERS]
    ]
    print_table(("producer>", "epoch>", "sequence>", "offset>", "last record", ""), rows, indent="  ")
    if len(log.producers) > _MAX_PRODUCERS:
        _line(f"  and {len(log.producers) - _MAX_PRODUCERS:,} more; --json has all")


def _names(logs: Sequence[LogPicture]) -> str:
    """orders 0-3 7, payments 2."""
    numbers: dict[str, list[int]] = defaultdict(list)
    others = []
    for log in logs:
        found = layout.parse_partition_dir(log.name)
        if found is None:
            others.append(log.name)
        else:
            numbers[found.topic].append(found.partition)
    return ", ".join([*(f"{topic} {_ranges(found)}" for topic, found in numbers.items()), *others])


def _ranges(numbers: Sequence[int]) -> str:
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    pairs = zip(starts, ends, strict=True)
    return " ".join(str(start) if start == end else f"{start}-{end}" for start, end in pairs)


def _topic(log: LogPicture) -> str:
    found = layout.parse_partition_dir(log.name)
    return found.topic if found else log.name


def _time(timestamp: int | None) -> str:
    return "-" if timestamp is None or timestamp < 0 else moment(timestamp)


def _paragraph(text: str, width: int, style: str | None = None) -> None:
    for line in textwrap.wrap(visible_line(text), width, subsequent_indent="  ", break_on_hyphens=False):
        _line(paint(line, style) if style else line)


def _line(text: str = "") -> None:
    sys.stdout.write(text + "\n")
