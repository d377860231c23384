"""`ottla produce`: send what comes in as records to a topic of any Kafka cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.client.byte_text import parse_header, separator, to_bytes
from ottla.cli.client.connection import connect, misuse
from ottla.cli.command_group import single_command
from ottla.cli.options import ConnectionOptions, QuietOption, TopicArgument
from ottla.cli.values import parse_time

if TYPE_CHECKING:
    from ottla.cli.client.produce_input import InputFiles, Parser, Shape

app = single_command()


class Acks(StrEnum):
    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True)
class InputOptions:
    """What is sent, and how it is cut into records."""

    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="What to send; - or nothing is standard input.")
    ] = None
    json: Annotated[
        bool,
        typer.Option("--json", help="Each line is an object: key, value, headers, partition, timestamp."),
    ] = False
    whole_file: Annotated[bool, typer.Option("--whole-file", help="Each file is one record.")] = False
    binary: Annotated[
        bool,
        typer.Option("--binary", help="Each value follows its length: 4 bytes, big-endian, -1 for null."),
    ] = False
    delimiter: Annotated[
        str,
        typer.Option("--delimiter", "-D", metavar="TEXT", help=r"What ends a record, with \n \t \0 \xFF."),
    ] = r"\n"

    @property
    def is_text(self) -> bool:
        return not (self.json or self.whole_file or self.binary)

    def open(self) -> InputFiles:
        from ottla.cli.client.produce_input import InputFiles, Shape

        if sum((self.json, self.whole_file, self.binary)) > 1:
            misuse("only one of --json, --whole-file and --binary at a time")
        shape = Shape.JSON if self.json else Shape.WHOLE if self.whole_file else Shape.TEXT
        shape = Shape.BINARY if self.binary else shape
        return InputFiles(self.files or ["-"], shape, separator(self.delimiter))


@dataclass(frozen=True)
class RecordOptions:
    """What is in a record."""

    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="What stands between key and value."),
    ] = None
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="TEXT", help="The key of all records.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="A header of all records. May be repeated."
        ),
    ] = None
    parse_headers: Annotated[
        bool, typer.Option("--parse-headers", help="Headers stand before key and value: a:1,b:2, then a tab.")
    ] = False
    headers_delimiter: Annotated[str, typer.Option(metavar="TEXT", help="What ends the headers.")] = r"\t"
    headers_separator: Annotated[
        str, typer.Option(metavar="TEXT", help="What stands between two headers.")
    ] = ","
    headers_key_separator: Annotated[
        str, typer.Option(metavar="TEXT", help="What follows a header's name.")
    ] = ":"
    null: Annotated[
        str | None, typer.Option("--null", metavar="TEXT", help="A key or value that is just this is null.")
    ] = None
    empty_is_null: Annotated[bool, typer.Option("-Z", help="An empty key or value is null.")] = False
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", "-p", metavar="N", min=-1, help="To this partition; -1: as the key says."
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Of all records: ISO 8601, a time ago (-15m), or epoch milliseconds."
        ),
    ] = None

    def check(self, source: InputOptions) -> None:
        if (self.key_separator is not None or self.parse_headers) and not source.is_text:
            misuse("-K and --parse-headers are for lines of text")

    def parser(self, shape: Shape) -> Parser:
        from ottla.cli.client.produce_input import Parser

        end, between = separator(self.headers_delimiter), separator(self.headers_separator)
        around_headers = end, between, separator(self.headers_key_separator)
        return Parser(
            shape=shape,
            key=None if self.key is None else to_bytes(self.key),
            key_separator=None if self.key_separator is None else separator(self.key_separator),
            headers=[parse_header(text) for text in self.header or ()],
            header_separators=around_headers if self.parse_headers else None,
            null=to_bytes(self.null) if self.null is not None else b"" if self.empty_is_null else None,
            partition=self.partition,
            timestamp_ms=parse_time(self.timestamp),
        )


@dataclass(frozen=True)
class ProducerOptions:
    """How records are sent."""

    compression: Annotated[
        Compression, typer.Option("--compression", "-z", help="The codec of the batches.")
    ] = Compression.NONE
    acks: Annotated[Acks, typer.Option(help="Who must have a record before it counts.")] = Acks.ALL
    idempotent: Annotated[
        bool | None, typer.Option(help="Each record once and in order, also on retries. On with acks all.")
    ] = None

    def config(self) -> dict[str, Any]:
        if self.idempotent and self.acks is not Acks.ALL:
            misuse("--idempotent needs --acks all")
        return {
            "compression.type": self.compression.value,
            "acks": self.acks.value,
            "enable.idempotence": self.acks is Acks.ALL if self.idempotent is None else self.idempotent,
        }


@app.command()
def produce(
    connection: ConnectionOptions,
    topic: TopicArgument,
    given: InputOptions,
    record: RecordOptions,
    producer: ProducerOptions,
    quiet: QuietOption = False,
) -> None:
    """Send records to a topic: a line each, or JSON lines, or whole files.

    Keys choose the partition as they do for Kafka's own clients. In JSON lines, {"base64": "..."} stands for bytes,
    and what `ottla consume --json` prints can be sent again. Ends with 1 when a record was not accepted.

    \b
    Examples:
      echo hello | ottla produce greetings
      ottla produce orders orders.csv -K , --compression zstd
      ottla consume orders --json | ottla produce copy --json --partition -1
      ottla produce images --whole-file -H type=png *.png
    """
    from ottla.cli.client import produce_work as work

    source, config = given.open(), producer.config()
    record.check(given)
    parser = record.parser(source.shape)
    with connect(connection) as kafka:
        work.run(kafka, topic, source, parser, config, quiet=quiet)
