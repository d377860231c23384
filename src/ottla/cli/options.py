"""Arguments and options that several commands have: the same words for the same thing everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.command_group import CONNECTION, OUTPUT, SPARK
from ottla.cli.completion import complete_groups, complete_topics

DEFAULT_TIMEOUT_S = 10.0


class Encoding(StrEnum):
    """How keys, values and header values are written as text."""

    UTF8 = "utf8"
    BASE64 = "base64"
    HEX = "hex"


# -- topics and groups

TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)
]
TopicsArgument = Annotated[
    list[str], typer.Argument(metavar="TOPIC", help="One topic or more.", autocompletion=complete_topics)
]
AnyTopicsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC", help="Without a name, all but internal topics.", autocompletion=complete_topics
    ),
]
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_groups)
]
GroupsArgument = Annotated[
    list[str], typer.Argument(metavar="GROUP", help="One group or more.", autocompletion=complete_groups)
]
AnyGroupsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Without a name, all groups.", autocompletion=complete_groups),
]
PartitionsOption = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", metavar="N", min=0, help="Only this partition. May be repeated."),
]
IfExistsOption = Annotated[bool, typer.Option("--if-exists", help="What is not there counts as deleted.")]

# -- doing it, or not yet

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
WriteOption = Annotated[
    bool, typer.Option("--write", help="Do it. Without this, only say what would be done.")
]
ValidateOption = Annotated[
    bool, typer.Option("--validate-only", help="Only ask the broker whether it would do it.")
]

# -- logs

SkipCorruptOption = Annotated[
    bool,
    typer.Option("--skip-corrupt", help="Take bad batches out of the log and keep what follows them."),
]
IntervalOption = Annotated[
    int, typer.Option(metavar="BYTES", min=0, help="Bytes of log between index entries.")
]
DeleteRetentionOption = Annotated[
    int, typer.Option(metavar="MS", min=0, help="How long tombstones stay, in milliseconds.")
]
OffsetsOption = Annotated[
    str | None, typer.Option("--offset", metavar="A[:B]", help="From offset A on, up to but without B.")
]

# -- output

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.", rich_help_panel=OUTPUT)]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw",
        help=r"Send a terminal all bytes as they are, not \x1b for an escape.",
        rich_help_panel=OUTPUT,
    ),
]
EncodingOption = Annotated[
    Encoding,
    typer.Option(
        help='How to show keys and values; what is not UTF-8 appears as {"base64": ...}.',
        rich_help_panel=OUTPUT,
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No count, no progress.", rich_help_panel=OUTPUT)
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Also write a Parquet file, a row for each line.", rich_help_panel=OUTPUT
    ),
]

# -- connection

BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="OTTLA_BOOTSTRAP",
        help="The broker to ask, or several with commas.",
        rich_help_panel=CONNECTION,
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        help="A setting of the client (librdkafka's names), or @FILE with one a line. May be repeated.",
        rich_help_panel=CONNECTION,
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help="Seconds without an answer before giving up.",
        rich_help_panel=CONNECTION,
    ),
]

# -- Spark

MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A Spark cluster, such as spark://host:7077. Without it local[*].",
        rich_help_panel=SPARK,
    ),
]
RemoteOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="A Spark Connect server, such as sc://host:15002.", rich_help_panel=SPARK
    ),
]
