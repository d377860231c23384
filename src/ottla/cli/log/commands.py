"""`ottla log`: look into, check and mend Kafka log directories."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from ottla.cli.command_group import command_group
from ottla.cli.log.drawing import By
from ottla.cli.options import (
    DeleteRetentionOption,
    Encoding,
    EncodingOption,
    IntervalOption,
    JsonOption,
    OffsetsOption,
    RawOption,
    SkipCorruptOption,
    WriteOption,
    output_option,
)
from ottla.cli.values import parse_bytes, parse_offsets, parse_time
from ottla.logtools.listing import Partition, Target, resolve
from ottla.storage.fs import RealFileSystem

app = command_group(
    "Look into, check and repair Kafka log directories: ottla's or Apache Kafka's, with a broker running or not."
)

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="A log file, a partition directory or a data directory.")
]
PartitionArgument = Annotated[str, typer.Argument(metavar="PATH", help="A partition directory.")]


@app.command()
def show(
    path: PathArgument,
    by: Annotated[
        By | None,
        output_option(help="What bars are long by. Without it time, or offsets where there are no times."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read every batch, to mark damage inside of segments too.")
    ] = False,
    json: JsonOption = False,
) -> bool:
    """Draw the segments of a log, or the partitions of a directory, to scale, with gaps and damage marked.

    In a pipe it has plain columns: sizes in bytes, times in ISO 8601, remarks behind a #. Exit code 1 if
    something could not be read.

    \b
    Examples:
      ottla log show /var/kafka/data
      ottla log show /var/kafka/data/orders-0 --by offset
      ottla log show /var/kafka/data | awk '$8 + $9 > 0'
    """
    from ottla.cli.log import show as log_show

    fs, target = _open(path)
    return log_show.run(fs, target, by=by, check=check, as_json=json)


@app.command()
def dump(
    path: PathArgument,
    records: Annotated[bool, typer.Option("--records", help="Records instead of batches.")] = False,
    json: JsonOption = False,
    parquet: Annotated[
        str | None, output_option(metavar="FILE", help="Write a Parquet file instead.")
    ] = None,
    offset: OffsetsOption = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="At this time or later.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before this time.")] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only records with this key, in the chosen encoding.")
    ] = None,
    encoding: EncodingOption = Encoding.UTF8,
    raw: RawOption = False,
) -> bool:
    """Print batches or records as text, JSON or Parquet.

    Exit code 1 if something was damaged. A TIME is ISO 8601 (UTC unless it names a zone), epoch milliseconds,
    or a time ago such as -15m, -2h or -1d.

    \b
    Examples:
      ottla log dump orders-0 --offset 100:200
      ottla log dump orders-0 --records --json --from -15m
      ottla log dump orders-0 --records --key customer-7 --to 2026-01-31T12:00:00Z
      ottla log dump __consumer_offsets-3 --records
    """
    from ottla.cli.log import dump as log_dump
    from ottla.logtools.dump import Query

    fs, target = _open(path)
    first, last = parse_offsets(offset)
    query = Query(first, last, parse_time(from_), parse_time(to), parse_bytes(key, encoding))
    output = log_dump.Output(records=records, as_json=json, parquet=parquet, encoding=encoding, raw=raw)
    return log_dump.run(fs, target, query, output)


@app.command()
def verify(path: PathArgument, json: JsonOption = False) -> bool:
    """Check every batch, record and index entry, epochs, snapshots, gaps and checkpoints.

    Only reads. Exit code 0: healthy. 1: defects. 2: wrong usage, or the path cannot be read. Notes are harmless: what a
    running broker or a kill -9 leaves.

    \b
    Example:
      ottla log verify /var/kafka/data
    """
    from ottla.cli.log import verify as log_verify

    fs, target = _open(path)
    return log_verify.run(fs, target, path, as_json=json)


@app.command()
def repair(
    path: PathArgument,
    write: WriteOption = False,
    skip_corrupt: SkipCorruptOption = False,
    quarantine_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep what is taken out there, on another disk, when this one is full."
        ),
    ] = None,
    json: JsonOption = False,
) -> bool:
    """Put names right, rebuild damaged indexes, snapshots and epochs, cut a torn tail, take out bad batches.

    Nothing goes that was not kept first: bytes of a log in <base offset>.quarantine (what they are stands in the
    .json beside it), other files in <file>.quarantine. Exit code 0 if `verify` is content afterwards, 1 if
    something is left that this does not mend, or records are lost. Refused while a broker uses the directory.

    \b
    Examples:
      ottla log repair /var/kafka/data/orders-0
      ottla log repair /var/kafka/data/orders-0 --write --skip-corrupt
      ottla log repair /var/kafka/data --write --quarantine-dir /mnt/other
    """
    from ottla.cli.log import repair as log_repair

    fs, target = _open(path)
    aside = _other_directory(fs, quarantine_dir)
    return log_repair.run(fs, target, write=write, skip_corrupt=skip_corrupt, as_json=json, aside=aside)


@app.command()
def losses(
    path: PathArgument,
    acknowledge: Annotated[
        bool,
        typer.Option("--acknowledge", help="Take note: starts, metrics and verify tell of them no more."),
    ] = False,
    json: JsonOption = False,
) -> bool:
    """Records that are known to be lost: which offsets, where, why, and where their bytes are kept if they are.

    A broker's start, its recovery and a repair put losses on record beside the log. Exit code 1 while something is not
    acknowledged. Works while a broker runs.

    \b
    Examples:
      ottla log losses /var/kafka/data
      ottla log losses /var/kafka/data/orders-0 --acknowledge
    """
    from ottla.cli.log import losses as log_losses

    fs, target = _open(path)
    return log_losses.run(fs, target, acknowledge=acknowledge, as_json=json)


@app.command()
def reindex(path: PartitionArgument, write: WriteOption = False, interval: IntervalOption = 4096) -> None:
    """Build all indexes and producer snapshots of one log anew.

    \b
    Example:
      ottla log reindex /var/kafka/data/orders-0 --write
    """
    from ottla.cli.log import offline as log_offline

    fs, partition = _one_log(path)
    log_offline.run_reindex(fs, partition, interval=interval, write=write)


@app.command()
def trim(
    path: PartitionArgument,
    before: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Drop what lies below it.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Drop what lies above it.")
    ] = None,
    before_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Drop what lies before the first record of this time or later."),
    ] = None,
    after_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Drop the first record later than this, and all behind it."),
    ] = None,
    write: WriteOption = False,
) -> None:
    """Drop the beginning or the end of one log.

    Whole batches only; the offset that is named stays. What is dropped is gone: copy the directory first if it
    may be needed again.

    \b
    Examples:
      ottla log trim /var/kafka/data/orders-0 --before 1000
      ottla log trim orders-0 --after-time 2026-01-31T12:00:00Z --write
    """
    from ottla.cli.log import offline as log_offline

    if (before is None) == (before_time is None) and (after is None) == (after_time is None):
        _fail("say what to drop with --before, --after, --before-time or --after-time (one of each kind)")
    fs, partition = _one_log(path)
    cut = log_offline.Cut(before, after, parse_time(before_time), parse_time(after_time))
    log_offline.run_trim(fs, partition, cut, write=write)


@app.command()
def compact(
    path: PartitionArgument,
    write: WriteOption = False,
    delete_retention_ms: DeleteRetentionOption = 86_400_000,
) -> None:
    """Keep only the newest record of each key in one log.

    The last segment stays as it is. Records without a key are dropped, as Kafka's cleaner does.

    \b
    Example:
      ottla log compact /var/kafka/data/customers-0 --write
    """
    from ottla.cli.log import offline as log_offline

    fs, partition = _one_log(path)
    log_offline.run_compact(fs, partition, delete_retention_ms=delete_retention_ms, write=write)


def _open(path: str) -> tuple[RealFileSystem, Target]:
    fs = RealFileSystem()
    # The directory's name says which partition it is.
    named = os.path.abspath(path) if os.path.basename(path.rstrip("/")) in ("", ".", "..") else path
    return fs, resolve(fs, named)


def _one_log(path: str) -> tuple[RealFileSystem, Partition]:
    fs, target = _open(path)
    if not isinstance(target, Partition) or not target.whole:
        _fail(f"{path} is not a partition directory; this command works on one log at a time")
    return fs, target


def _other_directory(fs: RealFileSystem, path: str | None) -> str | None:
    if path is not None and not fs.is_dir(path):
        _fail(f"--quarantine-dir {path} is not a directory; make it first")
    return path.rstrip("/") or "/" if path is not None else None


def _fail(message: str) -> NoReturn:
    print(f"ottla: {message}", file=sys.stderr)
    raise typer.Exit(2)
