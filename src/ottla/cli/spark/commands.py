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
    MasterOption,
    RemoteOption,
    ReportOption,
    SkipCorruptOption,
    WriteOption,
)
from ottla.records.compression.codec import Codec

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
    path: DirectoryArgument,
    report: ReportOption = None,
    json: JsonOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Check every batch, record and index entry, epochs, snapshots, gaps and checkpoints.

    Only reads. Findings and exit codes are those of `ottla log verify`. 0: healthy. 1: defects. 2: wrong usage,
    or the path cannot be read.

    \b
    Example:
      ottla spark verify /var/kafka/data --report findings.parquet
    """
    from ottla.cli.spark import check as work
    from ottla.spark.jobs.tasks import SparkMaster

    output = work.Output(report, json)
    if not work.run_verify(SparkMaster(master, remote), os.path.abspath(path), output):
        raise typer.Exit(1)


@app.command()
def stats(
    path: DirectoryArgument,
    report: ReportOption = None,
    json: JsonOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Count batches, records and bytes, codecs, times and transactions, from the headers of all batches.

    The table is by topic; --json and --report have a row for each segment.

    \b
    Example:
      ottla spark stats /var/kafka/data
    """
    from ottla.cli.spark import check as work
    from ottla.spark.jobs.tasks import SparkMaster

    work.run_stats(SparkMaster(master, remote), os.path.abspath(path), work.Output(report, json))


@app.command()
def repair(
    path: DirectoryArgument,
    write: WriteOption = False,
    skip_corrupt: SkipCorruptOption = False,
    report: ReportOption = None,
    json: JsonOption = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Rebuild damaged indexes, snapshots and epochs, cut torn tails, take out bad batches.

    Steps, copies and exit codes are those of `ottla log repair`. Refused while a broker uses the directory.

    \b
    Examples:
      ottla spark repair /var/kafka/data
      ottla spark repair /var/kafka/data --write --report steps.parquet
    """
    from ottla.cli.spark import check as work
    from ottla.spark.jobs.tasks import SparkMaster

    output = work.Output(report, json)
    place = SparkMaster(master, remote)
    if not work.run_repair(place, os.path.abspath(path), output, write=write, skip_corrupt=skip_corrupt):
        raise typer.Exit(1)


@app.command()
def reindex(
    path: DirectoryArgument,
    write: WriteOption = False,
    interval: IntervalOption = 4096,
    report: ReportOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
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
    from ottla.spark.jobs.tasks import SparkMaster

    place, output = SparkMaster(master, remote), Output(report)
    if not run_reindex(place, os.path.abspath(path), output, interval=interval, write=write):
        raise typer.Exit(2)


@app.command()
def compact(
    path: DirectoryArgument,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="A topic to compact. May be repeated.")
    ] = None,
    write: WriteOption = False,
    delete_retention_ms: DeleteRetentionOption = 86_400_000,
    report: ReportOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
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
    from ottla.spark.jobs.tasks import SparkMaster

    if not run_compact(
        SparkMaster(master, remote),
        os.path.abspath(path),
        Output(report),
        topics=topic or [],
        delete_retention_ms=delete_retention_ms,
        write=write,
    ):
        raise typer.Exit(2)


@app.command()
def export(
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
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Write topics as Parquet files under topic=<name>/partition=<number>.

    Columns: key, value, offset, timestamp, timestampType and headers. Works while a broker runs.

    \b
    Example:
      ottla spark export /var/kafka/data --topic orders --to lake/orders
    """
    from ottla.cli.spark.check import Output
    from ottla.cli.spark.move import run_export
    from ottla.spark.jobs.tasks import SparkMaster

    place, output = SparkMaster(master, remote), Output(report)
    if not run_export(
        place, os.path.abspath(path), to, output, topics=topic or [], skip_corrupt=skip_corrupt
    ):
        raise typer.Exit(1)


@app.command("import")
def import_(
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="The topic that the rows become.")],
    into: Annotated[
        str, typer.Option(metavar="DIR", help="A new data directory, or that of a broker that is stopped.")
    ],
    from_: Annotated[str | None, typer.Option("--from", metavar="PATH", help="Files to read.")] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="Of the files: parquet, json, csv, orc, or any that Spark knows."
        ),
    ] = "parquet",
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="A table that Spark knows, instead of files.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="A query over `source`, for rows that do not have these columns."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many the new topic shall have.")
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Rows under partition=<number>, as exported, go there.")
    ] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to a topic that is there.")] = False,
    codec: Annotated[
        str, typer.Option(metavar="NAME", help="Of the batches: none, gzip, snappy, lz4 or zstd.")
    ] = "zstd",
    batch_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Of records in a batch, before compression.")
    ] = 65_536,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A topic setting. May be repeated."),
    ] = None,
    node_id: Annotated[
        int, typer.Option(metavar="N", min=0, help="The node.id of a new data directory's broker.")
    ] = 1,
    report: ReportOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
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
    from ottla.cli.spark.move import RowSource, run_import
    from ottla.spark.jobs.import_topic import ImportOptions
    from ottla.spark.jobs.tasks import SparkMaster

    settings = dict(_setting(text) for text in config or [])
    options = ImportOptions(
        os.path.abspath(into), topic, partitions, append, _codec(codec), batch_bytes, settings, node_id
    )
    source = RowSource(from_, format_, table, sql, keep_partitions)
    run_import(SparkMaster(master, remote), source, options, Output(report))


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value


def _codec(name: str) -> Codec:
    try:
        return Codec[name.upper()]
    except KeyError:
        raise typer.BadParameter(f"{name!r} is no codec; choose none, gzip, snappy, lz4 or zstd") from None
