"""`ottla pipeline`: land topics in tables, look at how a pipeline does, and ask its table questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.command_group import command_group
from ottla.cli.options import JsonOption, SparkOptions

app = command_group("Land topics in tables (Delta, Iceberg, Parquet) or topics, exactly once.")

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The pipeline's file (TOML).", exists=True)
]


@app.command()
def run(
    spark: SparkOptions,
    file: FileArgument,
    once: Annotated[
        bool, typer.Option("--once", help="To the present end and stop, whatever the file's trigger.")
    ] = False,
) -> None:
    """Run a pipeline: to the present end (available_now) or until Ctrl-C.

    It may be stopped or killed at any moment: the next run goes on where the table stands, each record once.

    \b
    Examples:
      ottla pipeline run orders.toml
      ottla pipeline run orders.toml --master spark://10.0.0.5:7077
    """
    from ottla.cli.pipeline import work

    work.run(file, once=once, spark=spark)


@app.command()
def validate(
    spark: SparkOptions,
    file: FileArgument,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="How many records to try.")] = 1000,
) -> bool:
    """Try a pipeline on a sample: show the schema, some rows, and what would be put aside.

    Nothing is written.

    \b
    Example:
      ottla pipeline validate orders.toml
    """
    from ottla.cli.pipeline import work

    return work.validate(file, rows=rows, spark=spark)


@app.command()
def status(file: FileArgument, json: JsonOption = False) -> None:
    """Show where a pipeline stands: offsets and lag by partition, rows, last commit, bad rows.

    \b
    Example:
      ottla pipeline status orders.toml --json
    """
    from ottla.cli.pipeline import work

    work.status(file, as_json=json)


@app.command()
def show(
    spark: SparkOptions,
    file: FileArgument,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="Spark SQL; the views are `rows` and `quarantine`. Without it, the first rows are shown.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Ask the table a question with Spark SQL.

    \b
    Examples:
      ottla pipeline show orders.toml
      ottla pipeline show orders.toml --sql "select max(price) from rows"
      ottla pipeline show orders.toml --sql "select error from quarantine"
    """
    from ottla.cli.pipeline import work

    work.show(file, sql, as_json=json, spark=spark)


@app.command()
def compact(file: FileArgument) -> None:
    """Merge the table's small files.

    Not while the pipeline runs, unless the table is Delta or Iceberg.

    \b
    Example:
      ottla pipeline compact orders.toml
    """
    from ottla.cli.pipeline import work

    work.compact(file)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make.")] = Path("pipeline.toml"),
) -> None:
    """Write an example of a pipeline's file, with every key explained.

    \b
    Example:
      ottla pipeline init orders.toml
    """
    from ottla.cli.pipeline.init import init as write

    write(file)
