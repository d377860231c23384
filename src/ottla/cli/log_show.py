"""`ottla log show`: tables of segments, epochs and producers."""

from __future__ import annotations

import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from ottla.cli import log_side_files
from ottla.cli.json_text import to_json
from ottla.cli.log_options import format_size, format_time
from ottla.cli.tables import console_for_stdout, new_table
from ottla.logtools.show import LogPicture, SegmentPicture, picture
from ottla.logtools.source import DataDir, Partition, SideFile, Target, partitions_of
from ottla.storage.fs import FileSystem

_MAX_PRODUCERS = 20


def run(fs: FileSystem, target: Target, *, as_json: bool) -> None:
    if isinstance(target, SideFile):
        log_side_files.dump(fs, target, as_json=as_json)
        return
    console = console_for_stdout()
    summary = new_table("partition", "segments>", "size>", "offsets>", "last record")
    for partition in partitions_of(fs, target):
        shown = picture(fs, partition)
        if as_json:
            sys.stdout.write(to_json(_fields(shown)) + "\n")
        elif isinstance(target, DataDir):
            summary.add_row(*_summary(shown))
        else:
            _print(console, partition, shown)
    if isinstance(target, DataDir) and not as_json:
        console.print(f"{target.path}: {len(target.partitions)} partitions")
        console.print(summary)


def _fields(shown: LogPicture) -> dict[str, object]:
    fields = asdict(shown)
    fields["size"] = shown.size
    fields["epochs"] = [{"epoch": epoch, "start_offset": start} for epoch, start in shown.epochs]
    fields["producers"] = [entry._asdict() for entry in shown.producers]
    return fields


def _summary(shown: LogPicture) -> tuple[str, ...]:
    times = [segment.max_timestamp for segment in shown.segments if segment.max_timestamp is not None]
    return (
        shown.name,
        str(len(shown.segments)),
        format_size(shown.size),
        _offsets(shown),
        format_time(max(times)) if times else "-",
    )


def _offsets(shown: LogPicture) -> str:
    firsts = [segment.first_offset for segment in shown.segments if segment.first_offset is not None]
    lasts = [segment.last_offset for segment in shown.segments if segment.last_offset is not None]
    return f"{firsts[0]}..{lasts[-1]}" if firsts and lasts else "empty"


def _print(console: Console, partition: Partition, shown: LogPicture) -> None:
    about = (
        f"{shown.path}: {len(shown.segments)} segments, {format_size(shown.size)}, offsets {_offsets(shown)}"
    )
    console.print(about + (f", topic id {shown.topic_id}" if shown.topic_id else ""), soft_wrap=True)
    console.print(_segments(shown.segments))
    if shown.epochs:
        console.print(
            "leader epochs: " + ", ".join(f"{epoch} from offset {start}" for epoch, start in shown.epochs)
        )
    if shown.producers:
        console.print(f"producers at offset {shown.snapshot_offset}:")
        console.print(_producers(shown))
    if shown.other_files:
        console.print("left over: " + ", ".join(shown.other_files), soft_wrap=True)


def _segments(segments: list[SegmentPicture]) -> Table:
    table = new_table(
        "segment", "size>", "offsets>", "from", "to", "index>", "bytes/entry>", "time index>", "aborted>", ""
    )
    for segment in segments:
        offsets = "-" if segment.first_offset is None else f"{segment.first_offset}..{segment.last_offset}"
        table.add_row(
            segment.file,
            format_size(segment.size),
            offsets,
            _time(segment.first_timestamp),
            _time(segment.max_timestamp),
            _number(segment.index_entries),
            _number(segment.bytes_per_index_entry),
            _number(segment.time_index_entries),
            str(segment.aborted_transactions),
            " ".join(
                word
                for word, told in (("active", segment.is_active), ("snapshot", segment.has_snapshot))
                if told
            ),
        )
    return table


def _producers(shown: LogPicture) -> Table:
    table = new_table(
        "producer>", "epoch>", "last sequence>", "last offset>", "last record", "open transaction>"
    )
    for entry in shown.producers[:_MAX_PRODUCERS]:
        table.add_row(
            str(entry.producer_id),
            str(entry.epoch),
            str(entry.last_sequence),
            str(entry.last_offset),
            format_time(entry.timestamp),
            "-" if entry.txn_first_offset < 0 else f"from {entry.txn_first_offset}",
        )
    if len(shown.producers) > _MAX_PRODUCERS:
        table.add_row(f"+ {len(shown.producers) - _MAX_PRODUCERS} more")
    return table


def _time(timestamp: int | None) -> str:
    return "-" if timestamp is None else format_time(timestamp)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
