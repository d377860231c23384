"""`ottla spark`: work on whole data directories as Spark jobs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Check, mend and move whole data directories with Spark: one task for each segment or block of segments.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

DirectoryArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="A data directory or a partition directory that all workers can see."
    ),
]
MasterOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark master, such as spark://host:7077. Else local[*].")
]
RemoteOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark Connect server, such as sc://host:15002.")
]
ReportOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also write a Parquet file, a row for each line.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, and no table.")]


@app.command()
def verify(
    path: DirectoryArgument,
    report: ReportOption = None,
    json: JsonOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Check every batch, record and index entry, epochs, snapshots, gaps and checkpoints. Only reads.

    Findings and exit codes are those of `ottla log verify`. 0: healthy. 1: defects. 2: wrong usage, or the path
    cannot be read.

    \b
    Example:
      ottla spark verify /var/kafka/data --report findings.parquet
    """
    from ottla.cli import spark_work

    if not spark_work.run_verify(os.path.abspath(path), (master, remote), report=report, as_json=json):
        raise typer.Exit(1)
