"""`ottla consume`: print the records of a topic of any Kafka cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.client.byte_text import to_bytes, unescape
from ottla.cli.client.connection import connect, misuse
from ottla.cli.client.offsets import Kind, OffsetSpec, parse_place
from ottla.cli.command_group import OUTPUT, single_command
from ottla.cli.connection_settings import DEFAULT_BOOTSTRAP
from ottla.cli.options import (
    DEFAULT_TIMEOUT_S,
    BootstrapOption,
    OffsetsOption,
    QuietOption,
    RawOption,
    SettingsOption,
    TimeoutOption,
    TopicArgument,
)
from ottla.cli.terminal import is_terminal
from ottla.cli.values import MAX_OFFSET, parse_offsets
from ottla.escapes import visible_bytes

app = single_command()


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


@app.command()
def consume(
    topic: TopicArgument,
    partitions: Annotated[
        list[int] | None, typer.Argument(metavar="PARTITION", min=0, help="Without a number, all partitions.")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="PLACE", help="Where to begin. Without it, at the earliest."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="PLACE", help="Where to stop, itself left out.")
    ] = None,
    offset: OffsetsOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with records to come.")] = False,
    max_: Annotated[
        int | None, typer.Option("--max", "-n", metavar="N", min=1, help="Stop after N records.")
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='JSON lines; what is not UTF-8 appears as {"base64": ...}.',
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="How to print a record; see above.", rich_help_panel=OUTPUT
        ),
    ] = None,
    binary: Annotated[
        bool,
        typer.Option(
            "--binary",
            help="Values with their lengths before them, for `produce --binary`.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help="The key and a tab before the value.", rich_help_panel=OUTPUT)
    ] = False,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            metavar="TEXT",
            help="The key and this before the value.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    headers: Annotated[
        bool,
        typer.Option(
            "--headers", help="Headers before the rest: a:1,b:2, then a tab.", rich_help_panel=OUTPUT
        ),
    ] = False,
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter",
            "-D",
            metavar="TEXT",
            help=r"What ends a record, with \n \t \0 \xFF.",
            rich_help_panel=OUTPUT,
        ),
    ] = r"\n",
    null: Annotated[
        str | None,
        typer.Option(
            "--null",
            metavar="TEXT",
            help="What to print for a null. Nothing without it.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    null_word: Annotated[
        bool, typer.Option("-Z", help="Print NULL for a null.", rich_help_panel=OUTPUT)
    ] = False,
    raw: RawOption = False,
    isolation: Annotated[
        Isolation, typer.Option(help="Whether to leave out what is not committed.")
    ] = Isolation.COMMITTED,
    quiet: QuietOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    settings: SettingsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
) -> None:
    """Print the records that are in a topic now, a line each, without joining a group.

    A PLACE is earliest, latest (or end), an offset, -N (N records before the end of each partition), a time, or
    @ and epoch milliseconds. A time is ISO 8601 (UTC unless it names a zone) or a time ago such as -15m, -2h or
    -1d; it stands for the first record of that time or later.

    A FORMAT has %t topic, %p partition, %o offset, %T timestamp in milliseconds, %k key, %s value, %h headers,
    %K and %S their lengths (-1 for null), %R the value's length in 4 bytes, %% and \\n \\r \\t \\0 \\xFF.

    Records of one partition come in order; those of several are mixed.

    \b
    Examples:
      ottla consume orders --from -10
      ottla consume orders 0 1 --follow --json | jq .value
      ottla consume orders --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z
      ottla consume orders --format '%p:%o %k=%s\\n' --max 5
    """
    from ottla.cli.client import consume_work as work
    from ottla.cli.client.consume_output import Line, as_json, as_text, compile_format, visible_as_json

    if offset is not None and (from_ is not None or to is not None):
        misuse("--offset says where to begin and to stop; leave out --from and --to")
    if follow and (to is not None or (offset or "").partition(":")[2]):
        misuse("--follow has no end; leave out --to (--max can stop it)")
    if sum((json, binary, format_ is not None, key or key_separator is not None or headers)) > 1:
        misuse("only one of --json, --binary, --format and --key, -K or --headers at a time")
    begin, end = parse_place(from_ or "earliest"), parse_place(to or "end")
    if offset is not None:
        first, last = parse_offsets(offset)
        begin, end = (
            OffsetSpec(Kind.OFFSET, first),
            OffsetSpec(Kind.LATEST if last == MAX_OFFSET else Kind.OFFSET, last),
        )
    is_shown = is_terminal() and not raw
    if binary and is_shown:
        misuse(
            "--binary writes bytes that are not for a terminal; send them to a file or a pipe, or add --raw"
        )
    show = visible_bytes if is_shown else bytes
    shown_null = to_bytes(null) if null is not None else b"NULL" if null_word else b""
    line: Line
    if json:
        line = visible_as_json if is_shown else as_json
    elif binary:
        line = compile_format("%R%s", b"")
    elif format_ is not None:
        line = compile_format(format_, shown_null, show)
    else:
        before_value = unescape(key_separator) if key_separator is not None else b"\t" if key else None
        line = as_text(shown_null, unescape(delimiter), before_value, headers=headers, show=show)
    query = work.Query(
        topic, partitions, begin, end, follow=follow, limit=max_, committed=isolation is Isolation.COMMITTED
    )
    with connect(bootstrap, settings, timeout) as kafka:
        work.run(kafka, query, line, quiet=quiet)
