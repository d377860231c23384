"""`ottla consume`: print the records of a topic of any Kafka cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.client.byte_text import to_bytes, unescape
from ottla.cli.client.connection import connect, misuse
from ottla.cli.client.offsets import Kind, OffsetSpec, parse_place
from ottla.cli.command_group import single_command
from ottla.cli.options import (
    ConnectionOptions,
    OffsetsOption,
    QuietOption,
    RawOption,
    TopicArgument,
    output_option,
)
from ottla.cli.terminal import is_terminal
from ottla.cli.values import MAX_OFFSET, parse_offsets
from ottla.escapes import visible_bytes

if TYPE_CHECKING:
    from ottla.cli.client.consume_output import Line

app = single_command()


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True)
class RangeOptions:
    """Which records of the topic."""

    partitions: Annotated[
        list[int] | None, typer.Argument(metavar="PARTITION", min=0, help="Without a number, all partitions.")
    ] = None
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="PLACE", help="Where to begin. Without it, at the earliest."),
    ] = None
    to: Annotated[
        str | None, typer.Option("--to", metavar="PLACE", help="Where to stop, itself left out.")
    ] = None
    offset: OffsetsOption = None
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with records to come.")] = False
    max_: Annotated[
        int | None, typer.Option("--max", "-n", metavar="N", min=1, help="Stop after N records.")
    ] = None
    isolation: Annotated[Isolation, typer.Option(help="Whether to leave out what is not committed.")] = (
        Isolation.COMMITTED
    )

    def check(self) -> None:
        if self.offset is not None and (self.from_ is not None or self.to is not None):
            misuse("--offset says where to begin and to stop; leave out --from and --to")
        if self.follow and (self.to is not None or (self.offset or "").partition(":")[2]):
            misuse("--follow has no end; leave out --to (--max can stop it)")

    def bounds(self) -> tuple[OffsetSpec, OffsetSpec]:
        """Where to begin, and where to stop."""
        if self.offset is None:
            return parse_place(self.from_ or "earliest"), parse_place(self.to or "end")
        first, last = parse_offsets(self.offset)
        end = OffsetSpec(Kind.LATEST if last == MAX_OFFSET else Kind.OFFSET, last)
        return OffsetSpec(Kind.OFFSET, first), end


@dataclass(frozen=True)
class RecordOptions:
    """How a record is printed."""

    json: Annotated[
        bool, output_option("--json", help='JSON lines; what is not UTF-8 appears as {"base64": ...}.')
    ] = False
    format_: Annotated[
        str | None, output_option("--format", metavar="FORMAT", help="How to print a record; see above.")
    ] = None
    binary: Annotated[
        bool, output_option("--binary", help="Values with their lengths before them, for `produce --binary`.")
    ] = False
    key: Annotated[bool, output_option("--key", help="The key and a tab before the value.")] = False
    key_separator: Annotated[
        str | None,
        output_option("--key-separator", "-K", metavar="TEXT", help="The key and this before the value."),
    ] = None
    headers: Annotated[
        bool, output_option("--headers", help="Headers before the rest: a:1,b:2, then a tab.")
    ] = False
    delimiter: Annotated[
        str,
        output_option("--delimiter", "-D", metavar="TEXT", help=r"What ends a record, with \n \t \0 \xFF."),
    ] = r"\n"
    null: Annotated[
        str | None,
        output_option("--null", metavar="TEXT", help="What to print for a null. Nothing without it."),
    ] = None
    null_word: Annotated[bool, output_option("-Z", help="Print NULL for a null.")] = False
    raw: RawOption = False

    def check(self) -> None:
        with_key = self.key or self.key_separator is not None or self.headers
        if sum((self.json, self.binary, self.format_ is not None, with_key)) > 1:
            misuse("only one of --json, --binary, --format and --key, -K or --headers at a time")

    def line(self) -> Line:
        """What prints a record."""
        from ottla.cli.client.consume_output import as_json, as_text, compile_format, visible_as_json

        is_shown = is_terminal() and not self.raw
        if self.binary and is_shown:
            misuse(
                "--binary writes bytes that are not for a terminal; send them to a file or a pipe, or add --raw"
            )
        show = visible_bytes if is_shown else bytes
        null = to_bytes(self.null) if self.null is not None else b"NULL" if self.null_word else b""
        if self.json:
            return visible_as_json if is_shown else as_json
        if self.binary:
            return compile_format("%R%s", b"")
        if self.format_ is not None:
            return compile_format(self.format_, null, show)
        after_key = b"\t" if self.key else None
        if self.key_separator is not None:
            after_key = unescape(self.key_separator)
        return as_text(null, unescape(self.delimiter), after_key, headers=self.headers, show=show)


@app.command()
def consume(
    connection: ConnectionOptions,
    topic: TopicArgument,
    wanted: RangeOptions,
    output: RecordOptions,
    quiet: QuietOption = False,
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

    wanted.check()
    output.check()
    begin, end = wanted.bounds()
    line = output.line()
    query = work.Query(
        topic,
        wanted.partitions,
        begin,
        end,
        follow=wanted.follow,
        limit=wanted.max_,
        committed=wanted.isolation is Isolation.COMMITTED,
    )
    with connect(connection) as kafka:
        work.run(kafka, query, line, quiet=quiet)
