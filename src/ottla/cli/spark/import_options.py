"""The options of `ottla spark import`: which rows, and the topic that they become."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.connection_settings import parse_pair
from ottla.errors import ConfigError
from ottla.records.compression.codec import Codec

if TYPE_CHECKING:
    from ottla.spark.jobs.import_topic import ImportOptions


@dataclass(frozen=True)
class SourceOptions:
    """Where rows come from."""

    from_: Annotated[str | None, typer.Option("--from", metavar="PATH", help="Files to read.")] = None
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="Of the files: parquet, json, csv, orc, or any that Spark knows."
        ),
    ] = "parquet"
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="A table that Spark knows, instead of files.")
    ] = None
    sql: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="A query over `source`, for rows that do not have these columns."),
    ] = None
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Rows under partition=<number>, as exported, go there.")
    ] = False

    def check(self) -> None:
        if (self.from_ is None) == (self.table is None):
            raise ConfigError("say where the rows come from: --from PATH or --table NAME")
        if self.keep_partitions and not self.is_plain_parquet:
            raise ConfigError("--keep-partitions is for Parquet files; a column partition says the same")

    @property
    def is_plain_parquet(self) -> bool:
        """Files that tasks can read themselves."""
        is_local = self.from_ is not None and "://" not in self.from_
        return is_local and self.format_ == "parquet" and self.sql is None


@dataclass(frozen=True)
class TopicOptions:
    """The topic that the rows become."""

    topic: Annotated[str, typer.Option(metavar="TOPIC", help="The topic that the rows become.")]
    into: Annotated[
        str, typer.Option(metavar="DIR", help="A new data directory, or that of a broker that is stopped.")
    ]
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many the new topic shall have.")
    ] = None
    append: Annotated[bool, typer.Option("--append", help="Add to a topic that is there.")] = False
    codec: Annotated[
        str, typer.Option(metavar="NAME", help="Of the batches: none, gzip, snappy, lz4 or zstd.")
    ] = "zstd"
    batch_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Of records in a batch, before compression.")
    ] = 65_536
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A topic setting. May be repeated.")
    ] = None
    node_id: Annotated[
        int, typer.Option(metavar="N", min=0, help="The node.id of a new data directory's broker.")
    ] = 1

    def parsed(self) -> ImportOptions:
        from ottla.spark.jobs.import_topic import ImportOptions

        return ImportOptions(
            os.path.abspath(self.into),
            self.topic,
            self.partitions,
            self.append,
            _codec(self.codec),
            self.batch_bytes,
            dict(parse_pair(text, "--config") for text in self.config or ()),
            self.node_id,
        )


def _codec(name: str) -> Codec:
    try:
        return Codec[name.upper()]
    except KeyError:
        raise typer.BadParameter(f"{name!r} is no codec; choose none, gzip, snappy, lz4 or zstd") from None
