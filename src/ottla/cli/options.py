"""Arguments and options that several commands have: the same words for the same thing everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ottla.cli.command_group import CONNECTION, OUTPUT, SPARK
from ottla.cli.completion import complete_groups, complete_topics
from ottla.cli.connection_settings import DEFAULT_BOOTSTRAP


def output_option(*names: str, **settings: Any) -> Any:
    """An option about what is printed."""
    return typer.Option(*names, rich_help_panel=OUTPUT, **settings)


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

LogDirsArgument = Annotated[list[Path], typer.Argument(metavar="DIR", help="The broker's log directories.")]
SkipCorruptOption = Annotated[
    bool, typer.Option("--skip-corrupt", help="Take bad batches out of the log and keep what follows them.")
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

JsonOption = Annotated[bool, output_option("--json", help="One JSON object a line.")]
OneJsonOption = Annotated[bool, output_option("--json", help="One JSON object.")]
RawOption = Annotated[
    bool, output_option("--raw", help=r"Send a terminal all bytes as they are, not \x1b for an escape.")
]
EncodingOption = Annotated[
    Encoding, output_option(help='How to show keys and values; what is not UTF-8 appears as {"base64": ...}.')
]
QuietOption = Annotated[bool, output_option("--quiet", "-q", help="No count, no progress.")]
ReportOption = Annotated[
    str | None, output_option(metavar="FILE", help="Also write a Parquet file, a row for each line.")
]

# -- options that always come together


@dataclass(frozen=True)
class ConnectionOptions:
    """Which cluster to talk to, and how."""

    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap",
            "-b",
            metavar="HOST:PORT",
            envvar="OTTLA_BOOTSTRAP",
            help="The broker to ask, or several with commas.",
            rich_help_panel=CONNECTION,
        ),
    ] = DEFAULT_BOOTSTRAP
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="KEY=VALUE",
            help="A setting of the client (librdkafka's names), or @FILE with one a line. May be repeated.",
            rich_help_panel=CONNECTION,
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Seconds without an answer before giving up.",
            rich_help_panel=CONNECTION,
        ),
    ] = 10.0


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs: on a master or a Connect server, or else on this machine."""

    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A Spark cluster, such as spark://host:7077. Without it local[*].",
            rich_help_panel=SPARK,
        ),
    ] = None
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A Spark Connect server, such as sc://host:15002.", rich_help_panel=SPARK
        ),
    ] = None

    def session(self, name: str, settings: Mapping[str, str] | None = None) -> AbstractContextManager[Any]:
        """A session that is stopped at the end."""
        from ottla.spark.session.session import running_session

        return running_session(f"ottla {name}", master=self.master, remote=self.remote, settings=settings)
