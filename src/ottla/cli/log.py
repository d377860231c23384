"""`ottla log`: look into, check and mend Kafka log directories."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from ottla.cli.log_options import Encoding, parse_bytes, parse_offsets, parse_time
from ottla.logtools.source import Partition, Target, resolve
from ottla.storage.fs import RealFileSystem

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Look into, check and repair Kafka log directories: ottla's or Apache Kafka's, with a broker running or not.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="A log file, a partition directory or a data directory.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
EncodingOption = Annotated[
    Encoding, typer.Option(help='How to show keys and values; what is not UTF-8 appears as {"base64": ...}.')
]
WriteOption = Annotated[
    bool, typer.Option("--write", help="Do it. Without this, only say what would be done.")
]


@app.command()
def show(path: PathArgument, json: JsonOption = False) -> None:
    """A picture of the segments: sizes, offsets, times, index density, producers, epochs.

    \b
    Example:
      ottla log show /var/kafka/data/orders-0
    """
    from ottla.cli import log_show

    fs, target = _open(path)
    log_show.run(fs, target, as_json=json)


@app.command()
def dump(
    path: PathArgument,
    records: Annotated[bool, typer.Option("--records", help="Records instead of batches.")] = False,
    json: JsonOption = False,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="Write a Parquet file instead.")] = None,
    offset: Annotated[
        str | None, typer.Option(metavar="A[:B]", help="From offset A on, up to but without B.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="At this time or later.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before this time.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Only records with this key, in the chosen encoding.")
    ] = None,
    encoding: EncodingOption = Encoding.UTF8,
) -> None:
    """Batches or records as text, JSON or Parquet. Exit code 1 if something was damaged.

    A TIME is ISO 8601 (UTC unless it names a zone), epoch milliseconds, or a time ago such as -15m, -2h or -1d.

    \b
    Examples:
      ottla log dump orders-0 --offset 100:200
      ottla log dump orders-0 --records --json --from -15m
      ottla log dump orders-0 --records --key customer-7 --to 2026-01-31T12:00:00Z
      ottla log dump __consumer_offsets-3 --records
    """
    from ottla.cli import log_dump
    from ottla.logtools.dump import Query

    fs, target = _open(path)
    first, last = parse_offsets(offset)
    query = Query(first, last, parse_time(from_), parse_time(to), parse_bytes(key, encoding))
    output = log_dump.Output(records=records, as_json=json, parquet=parquet, encoding=encoding)
    if not log_dump.run(fs, target, query, output):
        raise typer.Exit(1)


@app.command()
def verify(path: PathArgument, json: JsonOption = False) -> None:
    """Check every batch, record and index entry, epochs, snapshots, gaps and checkpoints. Only reads.

    Exit code 0: healthy. 1: defects. 2: wrong usage, or the path cannot be read. Notes are harmless: what a
    running broker or a kill -9 leaves.

    \b
    Example:
      ottla log verify /var/kafka/data
    """
    from ottla.cli import log_verify

    fs, target = _open(path)
    if not log_verify.run(fs, target, path, as_json=json):
        raise typer.Exit(1)


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


def _fail(message: str) -> NoReturn:
    print(f"ottla: {message}", file=sys.stderr)
    raise typer.Exit(2)
