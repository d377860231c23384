"""A dry run: a few records through the whole pipeline in memory, and what would come of them. Nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ottla.errors import BrokerError
from ottla.spark import offsets as offset_math
from ottla.spark.offsets import EARLIEST
from ottla.spark.options import Bound, ReadOptions
from ottla.spark.pipeline.check_syntax import Unsupported
from ottla.spark.pipeline.columns import grows, infer, is_found, sample, told_of
from ottla.spark.pipeline.config import TABLE_FORMATS, Pipeline
from ottla.spark.pipeline.decode.rows import make_decoder, row_schema
from ottla.spark.pipeline.expect import Checks, sql_failure
from ottla.spark.pipeline.source import reader_options
from ottla.spark.pipeline.targets.choice import table_sink
from ottla.spark.pipeline.targets.console import as_text
from ottla.spark.pipeline.tasks import RowReader, TaskInput
from ottla.spark.read.plan import latest_offsets, plan_splits, starting_offsets
from ottla.spark.read.ranges import Split
from ottla.spark.sinks.base import growth
from ottla.spark.tables.ddl import type_name
from ottla.spark.tables.names import check_names
from ottla.spark.tables.table_files import fitted
from ottla.words import counted, noun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN_ROWS = 10
_SHOWN_BAD = 5

Spark = Callable[[], AbstractContextManager["SparkSession"]]


@dataclass
class Report:
    schema: pa.Schema
    rows: pa.Table
    read: int = 0
    bad: list[pa.Table] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def text(self) -> str:
        bad = sum(table.num_rows for table in self.bad)
        tried = counted(self.read, "record")
        lines = [f"{tried} tried: {counted(self.rows.num_rows, 'row')}, {bad:,} bad", "", "columns"]
        width = max((len(name) for name in self.schema.names), default=0)
        lines += [f"  {one.name.ljust(width)}  {type_name(one.type)}" for one in self.schema]
        if self.rows.num_rows:
            lines += ["", as_text(self.rows.slice(0, _SHOWN_ROWS))]
        if bad:
            told = pa.concat_tables(self.bad).slice(0, _SHOWN_BAD)
            lines += [
                "",
                "bad rows",
                as_text(told.select(["topic", "partition", "offset", "error", "bytes"]), 60),
            ]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"problem: {problem}" for problem in self.problems] or ["", "this pipeline can run"]
        return "\n".join(lines)


def dry_run(pipeline: Pipeline, count: int, spark: Spark) -> Report:
    options = reader_options(pipeline)
    notes: list[str] = []
    splits = tuple(_splits(options, count, notes))
    columns = pipeline.decode.schema
    problems: list[str] = []
    if is_found(pipeline):
        columns, clashes = infer(pipeline, sample(options, splits, count))
        if clashes:
            (notes if grows(pipeline) else problems).append(told_of(pipeline, clashes))
    decoded = row_schema(make_decoder(pipeline.decode, columns, grow=False).columns, pipeline.decode.metadata)
    spark_checks = False
    try:
        Checks(pipeline.expectations, decoded)
    except Unsupported as reason:
        spark_checks = True
        notes.append(f"an expectation needs Spark SQL, so rows go through the JVM: {reason}")
    decode = dataclasses.replace(pipeline.decode, on_error="quarantine")
    expectations = () if spark_checks else pipeline.expectations
    bad: list[pa.Table] = []
    reader = RowReader(TaskInput(options, splits, decode, columns, False, expectations), bad.append)
    tables = [table for index in range(len(splits)) for table in reader.rows(index)]
    rows = pa.concat_tables(tables) if tables else decoded.empty_table()
    if pipeline.has_transform or spark_checks:
        with spark() as session:
            rows = _through_spark(pipeline, session, rows.combine_chunks(), notes, spark_checks=spark_checks)
    report = Report(rows.schema, rows, reader.read, bad, problems, notes)
    _judge(pipeline, report)
    return report


def _splits(options: ReadOptions, count: int, notes: list[str]) -> list[Split]:
    """About so many records from where the pipeline would start, or else the last ones."""
    end = latest_offsets(options)
    start = starting_offsets(options)
    if offset_math.count(start, end) == 0:
        first = starting_offsets(dataclasses.replace(options, starting=Bound(EARLIEST)))
        each = max(1, count // max(1, len(end)))
        start = {partition: max(first.get(partition, at), at - each) for partition, at in end.items()}
        notes.append(
            "nothing is new: the last records were tried" if start != end else "there are no records yet"
        )
    return plan_splits(options, start, offset_math.limit(start, end, count))


def _through_spark(
    pipeline: Pipeline, session: SparkSession, rows: pa.Table, notes: list[str], *, spark_checks: bool
) -> pa.Table:
    from pyspark.sql import functions

    from ottla.spark.pipeline.sql_engine import transformed

    source: DataFrame = session.createDataFrame(rows)
    if spark_checks:
        failed = functions.expr(sql_failure(pipeline.expectations))
        good = source.where(failed.isNull())
        failed = rows.num_rows - good.count()
        notes.append(f"{counted(failed, 'row')} {noun(failed, 'fails', 'fail')} an expectation")
        source = good
    found: pa.Table = transformed(pipeline, session, source).toArrow()
    return found


def _judge(pipeline: Pipeline, report: Report) -> None:
    missing = [name for name in pipeline.sink.partition_by if name not in report.schema.names]
    if missing:
        report.problems.append(f"partition_by: there is no column {missing[0]}")
    if report.read and not report.rows.num_rows and report.bad:
        report.problems.append("not one record of the sample is good")
    if pipeline.sink.format in TABLE_FORMATS:
        sink = pipeline.sink
        try:
            check_names(report.schema)
            known = table_sink(pipeline).layout("validate", 0).schema
            if known is not None:
                rows = fitted(report.rows, known).schema
                new = growth(known, rows, evolve=sink.evolve_schema, where=sink.path).names
                if new:
                    report.notes.append(f"the table gets new columns: {', '.join(new)}")
        except BrokerError as error:
            report.problems.append(str(error))
