"""`ottla configs`: show and change settings of topics and brokers: of a Kafka cluster, or in a stopped ottla's data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.client.connection import connect
from ottla.cli.command_group import command_group
from ottla.cli.completion import complete_topics
from ottla.cli.connection_settings import parse_pair
from ottla.cli.options import ConnectionOptions, JsonOption, ValidateOption, output_option

app = command_group("Show and change the settings of topics and brokers, without a restart.")

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Ask no broker: the settings in the data directory of one that is stopped.",
    ),
]


class Of(StrEnum):
    """Whose settings."""

    TOPIC = "topic"
    BROKER = "broker"


OfArgument = Annotated[Of, typer.Argument(metavar="topic|broker", help="Whose settings.")]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The topic's name or the broker's id; with --data also `default`, for all brokers.",
        autocompletion=complete_topics,
    ),
]


@app.command()
def show(
    connection: ConnectionOptions,
    of: OfArgument,
    name: NameArgument,
    all_: Annotated[
        bool,
        output_option("--all", "-a", help="Also defaults, with where each value comes from and its meaning."),
    ] = False,
    json: JsonOption = False,
    data: DataOption = None,
) -> None:
    """Show what was set for a topic or a broker, as key=value.

    \b
    Examples:
      ottla configs show topic orders
      ottla configs show topic orders --all
      ottla configs show broker 1 --json
      ottla configs show broker 1 --data /var/lib/ottla
    """
    if data is not None:
        from ottla.cli.client import configs_offline as offline

        offline.show(data, of.value, name, everything=all_, as_json=json)
        return
    from ottla.cli.client import configs_work as work

    with connect(connection) as kafka:
        work.show(kafka, of.value, name, everything=all_, as_json=json)


@app.command("set")
def set_(
    connection: ConnectionOptions,
    of: OfArgument,
    name: NameArgument,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="One setting or more.")],
    validate_only: ValidateOption = False,
    data: DataOption = None,
) -> None:
    """Set some settings; the others stay as they are.

    \b
    Examples:
      ottla configs set topic orders retention.ms=86400000 segment.ms=3600000
      ottla configs set broker 1 log.cleaner.threads=2
      ottla configs set broker 1 max.connections=1000 --data /var/lib/ottla
    """
    changes = dict(parse_pair(pair, "KEY=VALUE") for pair in pairs)
    _alter(connection, data, of, name, changes, validate_only=validate_only)


@app.command()
def unset(
    connection: ConnectionOptions,
    of: OfArgument,
    name: NameArgument,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="One setting or more.")],
    validate_only: ValidateOption = False,
    data: DataOption = None,
) -> None:
    """Take settings back, so that defaults hold again.

    \b
    Examples:
      ottla configs unset topic orders retention.ms
      ottla configs unset broker default max.connections --data /var/lib/ottla
    """
    _alter(connection, data, of, name, dict.fromkeys(keys), validate_only=validate_only)


def _alter(
    connection: ConnectionOptions,
    data: Path | None,
    of: Of,
    name: str,
    changes: Mapping[str, str | None],
    *,
    validate_only: bool,
) -> None:
    if data is not None:
        from ottla.cli.client import configs_offline as offline

        offline.alter(data, of.value, name, changes, validate_only=validate_only)
        return
    from ottla.cli.client import configs_work as work

    with connect(connection) as kafka:
        work.alter(kafka, of.value, name, changes, validate_only=validate_only)
