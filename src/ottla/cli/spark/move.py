"""`ottla spark export` and `import`: run the jobs, and show what was written."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from ottla.cli.options import SparkOptions
from ottla.cli.spark.check import WHERE, Output
from ottla.cli.spark.import_options import SourceOptions
from ottla.cli.spark.progress import session_of
from ottla.cli.tables import print_table
from ottla.cli.values import format_size
from ottla.runtime import SystemRuntime
from ottla.spark.jobs.export import Exported, export
from ottla.spark.jobs.import_topic import Imported, ImportOptions, import_topic
from ottla.spark.jobs.importing import pack_frame, pack_parquet, parquet_pieces
from ottla.spark.options import read_options
from ottla.storage.fs import RealFileSystem
from ottla.words import counted

_OFFSETS = WHERE | dict.fromkeys(("start_offset", "end_offset", "size"), int)
_EXPORT = _OFFSETS | {"rows": int, "damaged": int}
_IMPORT = _OFFSETS | {"segments": int}


def run_export(
    place: SparkOptions, path: str, target: str, output: Output, *, topics: Sequence[str], skip_corrupt: bool
) -> bool:
    """Whether everything could be read."""
    given = {"path": path, "includeHeaders": "true"}
    if topics:
        given["subscribe"] = ",".join(topics)
    if skip_corrupt:
        given["mode"] = "permissive"
    options = read_options(given)
    with session_of(place, "spark export") as spark:
        files = export(spark, options, os.path.abspath(target))
    output.write(_EXPORT, (asdict(file) for file in files))
    _print_exported(files)
    damaged = sum(file.damaged for file in files)
    rows, size = sum(file.rows for file in files), format_size(sum(file.size for file in files))
    left_out = f"; {counted(damaged, 'damaged part')} left out" if damaged else ""
    print(f"{target}: {counted(rows, 'row')}, {size} in {counted(len(files), 'file')}{left_out}")
    return not damaged


def _print_exported(files: Iterable[Exported]) -> None:
    by_topic: dict[str, list[Exported]] = defaultdict(list)
    for file in files:
        by_topic[file.topic].append(file)
    rows = [
        (
            topic,
            len({file.partition for file in found}),
            len(found),
            sum(file.rows for file in found),
            format_size(sum(file.size for file in found)),
            sum(file.damaged for file in found),
        )
        for topic, found in sorted(by_topic.items())
    ]
    print_table(("topic", "partitions>", "files>", "rows>", "size>", "damaged>"), rows)


def run_import(place: SparkOptions, source: SourceOptions, options: ImportOptions, output: Output) -> None:
    source.check()
    fs = RealFileSystem()
    with closing(SystemRuntime()) as runtime, session_of(place, "spark import") as spark:
        if source.is_plain_parquet:
            pieces = parquet_pieces(
                os.path.abspath(str(source.from_)), keep_partitions=source.keep_partitions
            )
            done = import_topic(
                spark, fs, runtime, options, lambda packing: pack_parquet(spark, pieces, packing)
            )
        else:
            frame = _frame(spark, source)
            done = import_topic(spark, fs, runtime, options, lambda packing: pack_frame(frame, packing))
    output.write(_IMPORT, iter(_rows(options, done)))
    _print_imported(options, done)


def _frame(spark: Any, source: SourceOptions) -> Any:
    frame = (
        spark.table(source.table) if source.table else spark.read.format(source.format_).load(source.from_)
    )
    if source.sql is None:
        return frame
    frame.createOrReplaceTempView("source")
    return spark.sql(source.sql)


def _rows(options: ImportOptions, done: Imported) -> list[dict[str, Any]]:
    return [
        {
            "file": f"{options.into}/{options.topic}-{number}",
            "start_offset": part.place.base_offset,
            "end_offset": part.end_offset,
            "segments": len(part.segments),
            "size": part.size,
        }
        for number, part in done.partitions.items()
    ]


def _print_imported(options: ImportOptions, done: Imported) -> None:
    rows = []
    for number, part in done.partitions.items():
        empty = part.end_offset == part.place.base_offset
        offsets = "none" if empty else f"{part.place.base_offset}..{part.end_offset - 1}"
        rows.append((f"{options.topic}-{number}", offsets, len(part.segments), format_size(part.size)))
    print_table(("partition", "offsets>", "segments>", "size>"), rows)
    print(
        f"{options.into}: {counted(done.rows, 'row')} went into {options.topic};"
        f" `ottla serve --data {options.into}` serves it"
    )
