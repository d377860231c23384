"""`ottla topics`: list, describe, create, delete and widen the topics of any Kafka cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.client.connection import confirm, connect, misuse
from ottla.cli.command_group import command_group
from ottla.cli.connection_settings import parse_pair
from ottla.cli.options import (
    AnyTopicsArgument,
    ConnectionOptions,
    IfExistsOption,
    JsonOption,
    PartitionsOption,
    TopicArgument,
    TopicsArgument,
    ValidateOption,
    YesOption,
    output_option,
)

app = command_group("List, describe, create, delete and widen topics, and ask for their offsets.")


@app.command("list")
def list_(
    connection: ConnectionOptions,
    long: Annotated[bool, output_option("--long", "-l", help="With partitions and replicas.")] = False,
    internal: Annotated[bool, typer.Option("--internal", help="Also Kafka's own topics.")] = False,
    json: JsonOption = False,
) -> None:
    """List the names of all topics, one a line.

    \b
    Examples:
      ottla topics list
      ottla topics list --long --internal -b broker.example:9092
    """
    from ottla.cli.client import topics_work as work

    with connect(connection) as kafka:
        work.list_topics(kafka, long=long, internal=internal, as_json=json)


@app.command()
def describe(
    connection: ConnectionOptions, names: AnyTopicsArgument = None, json: JsonOption = False
) -> bool:
    """Show partitions with leaders, replicas and offsets, and what is configured.

    \b
    Examples:
      ottla topics describe orders
      ottla topics describe --json | jq .topic
    """
    from ottla.cli.client import topics_work as work

    with connect(connection) as kafka:
        return work.describe(kafka, names or work.user_topics(kafka), as_json=json)


@app.command()
def create(
    connection: ConnectionOptions,
    names: TopicsArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", metavar="N", min=1, help="Without it, the broker's num.partitions."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", metavar="N", min=1, help="Without it, the broker's default."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic setting. May be repeated."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="What is there already counts as created.")
    ] = False,
    validate_only: ValidateOption = False,
    json: JsonOption = False,
) -> bool:
    """Create topics, and return when the broker knows them.

    \b
    Examples:
      ottla topics create orders --partitions 6 --config retention.ms=86400000
      ottla topics create orders payments --if-not-exists
    """
    from ottla.cli.client import topics_work as work

    wanted = work.Wanted(
        partitions, replication_factor, dict(parse_pair(c, "--config") for c in config or ())
    )
    with connect(connection) as kafka:
        told = work.Teller(as_json=json, validate_only=validate_only)
        return work.create(kafka, names, wanted, told, if_not_exists=if_not_exists)


@app.command()
def delete(
    connection: ConnectionOptions,
    names: TopicsArgument,
    if_exists: IfExistsOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> bool:
    """Delete topics with all their records.

    \b
    Examples:
      ottla topics delete orders
      ottla topics delete orders payments --if-exists --yes
    """
    from ottla.cli.client import topics_work as work

    with connect(connection) as kafka:
        confirm(f"Delete {', '.join(names)} with all records on {connection.bootstrap}?", yes=yes)
        return work.delete(kafka, names, work.Teller(as_json=json), if_exists=if_exists)


@app.command("add-partitions")
def add_partitions(
    connection: ConnectionOptions,
    name: TopicArgument,
    total: Annotated[int, typer.Option(metavar="N", min=1, help="How many partitions the topic shall have.")],
    validate_only: ValidateOption = False,
    json: JsonOption = False,
) -> bool:
    """Give a topic more partitions.

    Records that are there stay where they are; the keys of new ones may go to other partitions than before.

    \b
    Example:
      ottla topics add-partitions orders --total 12
    """
    from ottla.cli.client import topics_work as work

    with connect(connection) as kafka:
        return work.add_partitions(kafka, name, total, work.Teller(as_json=json, validate_only=validate_only))


@app.command()
def offsets(
    connection: ConnectionOptions,
    names: AnyTopicsArgument = None,
    at: Annotated[
        str, typer.Option(metavar="PLACE", help="Which: earliest, latest, max-timestamp, a time, or @MS.")
    ] = "latest",
    partition: PartitionsOption = None,
    json: JsonOption = False,
) -> None:
    """Show offsets as topic:partition:offset; the latest one is that of the next record.

    A time is ISO 8601 (UTC unless it names a zone), a time ago such as -15m, or @ and epoch milliseconds; it
    stands for the first record of that time or later. Nothing stands after the last colon where there is none.

    \b
    Examples:
      ottla topics offsets orders
      ottla topics offsets orders --at 2026-01-31T12:00:00Z
      ottla topics offsets --at earliest --json
    """
    from ottla.cli.client import topics_work as work
    from ottla.cli.client.offsets import Kind, parse_place

    place = parse_place(at)
    if place.kind in (Kind.OFFSET, Kind.LAST):
        misuse(f"--at {at}: write earliest, latest, max-timestamp, a time, or @MS (epoch milliseconds)")
    with connect(connection) as kafka:
        work.offsets(kafka, names or work.user_topics(kafka), place, partition, as_json=json)
