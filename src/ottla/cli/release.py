"""`ottla release`: give log directories back to Kafka, and say what it will not find as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from ottla.cli.command_group import single_command
from ottla.cli.json_text import to_json
from ottla.cli.options import LogDirsArgument, OneJsonOption
from ottla.cluster.adopt import Released, release
from ottla.storage.fs import RealFileSystem

app = single_command()

_HELP = """\
Remove ottla's own files from data directories, so that Kafka can have them back.

The broker must be stopped. Records stay. Kafka's controller has not seen what happened meanwhile: topics and
partitions that were made here are unknown to it, and it moves them aside. Each of them is named.

\b
Examples:
  ottla release /var/lib/kafka
  ottla release /disk1/kafka /disk2/kafka --json
"""


@app.command("release", help=_HELP)
def command(directories: LogDirsArgument, json: OneJsonOption = False) -> None:
    released = release(RealFileSystem(), [str(path) for path in directories])
    if json:
        typer.echo(to_json(asdict(released)))
    else:
        _print(released)


def _print(released: Released) -> None:
    for path in released.removed:
        typer.echo(f"removed {path}")
    if not released.removed:
        typer.echo("there was nothing of ottla's to remove")
    _list("Kafka does not know these partitions and will move them aside as stray (-stray):", released.stray)
    _list(
        "Kafka knows these partitions, but they were deleted; it will make them anew, empty:", released.empty
    )
    _list("The settings of these topics go back to those that Kafka knows:", released.changed)
    for note in released.notes:
        typer.echo(f"note: {note}")


def _list(title: str, names: Sequence[str]) -> None:
    if names:
        typer.echo(title)
        for name in names:
            typer.echo(f"  {name}")
