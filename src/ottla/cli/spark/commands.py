"""`ottla spark`: work on whole data directories as Spark jobs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.command_group import command_group
from ottla.cli.options import (
    DeleteRetentionOption,
    IntervalOption,
    JsonOption,
    ReportOption,
    SkipCorruptOption,
    SparkOptions,
    WriteOption,
)
from ottla.cli.spark.import_options import SourceOptions, TopicOptions

app = command_group(
    "Check, mend and move whole data directories with Spark: one task for each segment or block of segments."
)

DirectoryArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="A data directory or a partition directory that all workers can see."
    ),
]


@app.command()
def verify(
    spark: SparkOptions, path: DirectoryArgument, report: ReportOption = None, json: JsonOption = False
) -> bool:
    """Check every batch, record and index entry, epochs, snapshots, gaps and checkpoints.

    Only reads. Findings and exit codes are those of `ottla log verify`. 0: healthy. 1: defects. 2: wrong usage,
    or the path cannot be read.

    \b
    Example:
      ottla spark verify /var/kafka/data --report findings.parquet
    """
    from ottla.cli.spark import check as work

    return work.run_verify(spark, os.path.abspath(path), work.Output(report, json))


@app.command()
def stats(
    spark: SparkOptions, path: DirectoryArgument, report: ReportOption = None, json: JsonOption = False
) -> None:
    """Count batches, records and bytes, codecs, times and transactions, from the headers of all batches.

    The table is by topic; --json and --report have a row for each segment.

    \b
    Example:
      ottla spark stats /var/kafka/data
    """
    from ottla.cli.spark import check as work

    work.run_stats(spark, os.path.abspath(path), work.Output(report, json))


@app.command()
def repair(
    spark: SparkOptions,
    path: DirectoryArgument,
    write: WriteOption = False,
    skip_corrupt: SkipCorruptOption = False,
    report: ReportOption = None,
    json: JsonOption = False,
) -> bool:
    """Rebuild damaged indexes, snapshots and epochs, cut torn tails, take out bad batches.

    Steps, copies and exit codes are those of `ottla log repair`. Refused while a broker uses the directory.

    \b
    Examples:
      ottla spark repair /var/kafka/data
      ottla spark repair /var/kafka/data --write --report steps.parquet
    """
    from ottla.cli.spark import check as work

    output = work.Output(report, json)
    return work.run_repair(spark, os.path.abspath(path), output, write=write, skip_corrupt=skip_corrupt)


@app.command()
def reindex(
    spark: SparkOptions,
    path: DirectoryArgument,
    write: WriteOption = False,
    interval: IntervalOption = 4096,
    report: ReportOption = None,
) -> None:
    """Build all indexes and producer snapshots anew, in every log.

    A damaged log is refused and the others are done; then the exit code is 2. Refused as a whole while a broker
    uses the directory.

    \b
    Example:
      ottla spark reindex /var/kafka/data --write
    """
    from ottla.cli.spark.check import Output
    from ottla.cli.spark.rewrite import run_reindex

    if not run_reindex(spark, os.path.abspath(path), Output(report), interval=interval, write=write):
        raise typer.Exit(2)


@app.command()
def compact(
    spark: SparkOptions,
    path: DirectoryArgument,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="A topic to compact. May be repeated.")
    ] = None,
    write: WriteOption = False,
    delete_retention_ms: DeleteRetentionOption = 86_400_000,
    report: ReportOption = None,
) -> None:
    """Keep only the newest record of each key, in every log of the topics.

    The last segments stay as they are. Records without a key are dropped, as Kafka's cleaner does; so the
    topics of a data directory must be named. A damaged log is refused and the others are done; then the exit
    code is 2.

    \b
    Example:
      ottla spark compact /var/kafka/data --topic customers --write
    """
    from ottla.cli.spark.check import Output
    from ottla.cli.spark.rewrite import run_compact

    if not run_compact(
        spark,
        os.path.abspath(path),
        Output(report),
        topics=topic or [],
        delete_retention_ms=delete_retention_ms,
        write=write,
    ):
        raise typer.Exit(2)


@app.command()
def export(
    spark: SparkOptions,
    path: DirectoryArgument,
    to: Annotated[str, typer.Option(metavar="DIR", help="A directory that is not there yet.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Only this topic, not all but Kafka's own. May be repeated."),
    ] = None,
    skip_corrupt: Annotated[
        bool, typer.Option("--skip-corrupt", help="Leave out what is damaged; then the exit code is 1.")
    ] = False,
    report: ReportOption = None,
) -> bool:
    """Write topics as Parquet files under topic=<name>/partition=<number>.

    Columns: key, value, offset, timestamp, timestampType and headers. Works while a broker runs.

    \b
    Example:
      ottla spark export /var/kafka/data --topic orders --to lake/orders
    """
    from ottla.cli.spark.check import Output
    from ottla.cli.spark.move import run_export

    source, output = os.path.abspath(path), Output(report)
    return run_export(spark, source, to, output, topics=topic or [], skip_corrupt=skip_corrupt)


@app.command("import")
def import_(
    spark: SparkOptions, source: SourceOptions, target: TopicOptions, report: ReportOption = None
) -> None:
    """Build a topic out of rows: finished segments and indexes, in parallel, without a broker.

    Columns: value, and if they are there key, headers, timestamp, partition. Rows go to partitions by their keys as
    Kafka's clients do it, in the order in which they are read. All rows are there in the end, or none.

    \b
    Examples:
      ottla spark import --from rows.parquet --topic t --partitions 6 --into data
      ottla spark import --from a.csv --format csv --topic t --into data \\
          --partitions 1 --sql "select _c0 as key, _c1 as value from source"
      ottla spark import --from more.parquet --topic t --append --into data
    """
    from ottla.cli.spark.check import Output
    from ottla.cli.spark.move import run_import

    run_import(spark, source, target.parsed(), Output(report))
