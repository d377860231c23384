"""`ottla groups`: list and describe consumer groups, move their offsets, delete them; on any Kafka cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.client.connection import confirm, connect, misuse
from ottla.cli.command_group import command_group
from ottla.cli.completion import complete_topics
from ottla.cli.options import (
    AnyGroupsArgument,
    ConnectionOptions,
    GroupArgument,
    GroupsArgument,
    IfExistsOption,
    JsonOption,
    YesOption,
    output_option,
)

app = command_group("List and describe consumer groups, move their offsets, delete them.")


@app.command("list")
def list_(
    connection: ConnectionOptions,
    long: Annotated[bool, output_option("--long", "-l", help="With state and type.")] = False,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Only those in this state. May be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the names of all groups, one a line.

    \b
    Examples:
      ottla groups list
      ottla groups list --long --state empty
    """
    from ottla.cli.client import groups_work as work

    with connect(connection) as kafka:
        work.list_groups(kafka, work.states(state or ()), long=long, as_json=json)


@app.command()
def describe(
    connection: ConnectionOptions, names: AnyGroupsArgument = None, json: JsonOption = False
) -> bool:
    """Show members, what each reads, how far the group is, and how far it lags behind.

    \b
    Examples:
      ottla groups describe readers
      ottla groups describe --json | jq .lag
    """
    from ottla.cli.client import groups_work as work

    with connect(connection) as kafka:
        return work.describe(kafka, names or work.all_groups(kafka), as_json=json)


@app.command()
def reset(
    connection: ConnectionOptions,
    name: GroupArgument,
    to: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where to: earliest, latest, an offset, -N, a time, or @MS."),
    ] = None,
    shift: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Instead of --to: N records on from where the group is; back with -N."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:0,2]",
            help="Only this topic, or these partitions of it. May be repeated.",
            autocompletion=complete_topics,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only say what would be done.")] = False,
    json: JsonOption = False,
) -> bool:
    """Set where a group goes on reading.

    Nobody may be reading in it meanwhile. An offset outside of a partition becomes its nearest end. A time is
    ISO 8601 (UTC unless it names a zone), a time ago such as -15m, or @ and epoch milliseconds; it stands for the
    first record of that time or later.

    \b
    Examples:
      ottla groups reset readers --to earliest --dry-run
      ottla groups reset readers --to -1h --topic orders
      ottla groups reset readers --to 42 --topic orders:0
      ottla groups reset readers --shift -10
    """
    from ottla.cli.client import groups_reset as work
    from ottla.cli.client.offsets import Kind, parse_place

    if (to is None) == (shift is None):
        misuse("write either --to or --shift")
    place = None if to is None else parse_place(to)
    if place is not None and place.kind is Kind.MAX_TIMESTAMP:
        misuse(f"--to {to}: write earliest, latest, an offset, -N, a time, or @MS (epoch milliseconds)")
    with connect(connection) as kafka:
        target = place if place is not None else work.Shift(shift or 0)
        return work.reset(kafka, name, target, topic or (), dry_run=dry_run, as_json=json)


@app.command()
def delete(
    connection: ConnectionOptions,
    names: GroupsArgument,
    if_exists: IfExistsOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> bool:
    """Delete groups that nobody is in, with their offsets.

    \b
    Examples:
      ottla groups delete readers
      ottla groups delete readers writers --if-exists --yes
    """
    from ottla.cli.client import groups_work as work

    with connect(connection) as kafka:
        confirm(f"Delete {', '.join(names)} with all offsets on {connection.bootstrap}?", yes=yes)
        return work.delete(kafka, names, if_exists=if_exists, as_json=json)
