"""A batch through Spark SQL: decoded rows become the view `source`, and the query's rows are written by tasks as ever.

Spark may compute a part of a query twice, or not at all. So a source task that put bad rows aside, or counted them,
leaves a receipt; the driver takes one for each split, whichever: they are equal, as the split's records are.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ottla.errors import ConfigError, PipelineError
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.decode.rows import make_decoder, row_schema
from ottla.spark.pipeline.expect import sql_failure
from ottla.spark.pipeline.quarantine import QUARANTINE_SCHEMA
from ottla.spark.pipeline.receipts import Receipts
from ottla.spark.pipeline.tasks import (
    HIDDEN,
    HIDDEN_COLUMNS,
    FileWriter,
    RowReader,
    RowWriter,
    TaskInput,
    TaskResult,
    pickled,
)
from ottla.spark.tables.reshape import aligned
from ottla.spark.tables.table_files import Layout, TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SourceRows:
    """What a source task yields: the good rows of its split, and with `origin` where each came from."""

    given: TaskInput
    bad_layout: Layout
    receipts: Receipts
    schema: pa.Schema
    origin: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                bad_rows = TableWriter(self.bad_layout)
                reader = RowReader(self.given, bad_rows.write)
                for rows in reader.rows(index, self.origin):
                    yield from aligned(rows, self.schema).combine_chunks().to_batches()
                self.receipts.leave(
                    index, TaskResult(read=reader.read, bad=reader.bad, bad_files=bad_rows.close())
                )


@dataclass(frozen=True)
class WrittenRows:
    """What a last task does: hand its rows to the writer."""

    writer: RowWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        yield pickled([self.writer.write(tables, context.partitionId())])


class SqlBatch:
    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        given: TaskInput,
        bad_layout: Layout,
        *,
        spark_checks: bool,
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._bad_layout = bad_layout
        self._spark_checks = spark_checks
        self._receipts = Receipts(os.path.join(bad_layout.directory, f"_ottla_receipts-{uuid.uuid4().hex}"))
        columns = make_decoder(given.decode, given.schema, grow=False).columns
        self._columns = row_schema(columns, given.decode.metadata)
        # Columns must be known before the query is: new ones were looked for in a sample of this batch.
        self._given = dataclasses.replace(
            given, grow=False, expectations=() if spark_checks else given.expectations
        )

    def run(self, writer: RowWriter) -> list[TaskResult]:
        from ottla.spark.write.writer import arrow_schema

        if not self._given.splits:
            return []
        try:
            source, bad = self._checked(self._source())
            rows = transformed(self._pipeline, self._session, source)
            results = _collected(rows, writer)
            if not any(result.schema for result in results):
                results.append(TaskResult(schema=arrow_schema(rows.schema)))
            results += self._failed(bad) if bad is not None else []
            return results + self._receipts.read()
        finally:
            self._receipts.remove()
            _remove_if_empty(self._bad_layout.directory)

    def _source(self) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = self._columns
        if self._spark_checks:
            for name in HIDDEN_COLUMNS:
                schema = schema.append(QUARANTINE_SCHEMA.field(name.removeprefix(HIDDEN)).with_name(name))
        count = len(self._given.splits)
        work = SourceRows(self._given, self._bad_layout, self._receipts, schema, self._spark_checks)
        return self._session.range(0, count, 1, count).mapInArrow(work, from_arrow_schema(schema))

    def _checked(self, source: DataFrame) -> tuple[DataFrame, DataFrame | None]:
        """Rows that pass all checks, and those that do not, where Spark is to say."""
        if not self._spark_checks:
            return source, None
        from pyspark.sql import functions

        failed = f"{HIDDEN}error"
        told = source.withColumn(failed, functions.expr(sql_failure(self._pipeline.expectations)))
        bad = told.where(f"{failed} is not null").selectExpr(
            *(f"{HIDDEN}{name} as {name}" for name in QUARANTINE_SCHEMA.names)
        )
        return told.where(f"{failed} is null").drop(failed, *HIDDEN_COLUMNS), bad

    def _failed(self, bad: DataFrame) -> list[TaskResult]:
        """Rows that failed a check of Spark's, as the pipeline says."""
        on_error = self._pipeline.decode.on_error
        if on_error == "fail":
            first = bad.take(1)
            if first:
                raise PipelineError(
                    f"{first[0].topic}-{first[0].partition}, offset {first[0].offset}: {first[0].error}"
                )
            return []
        if on_error == "drop":
            return [TaskResult(bad=bad.count())]
        results = _collected(bad, FileWriter(self._bad_layout))
        return [TaskResult(bad=one.rows, bad_files=one.files) for one in results]


def _collected(rows: DataFrame, writer: RowWriter) -> list[TaskResult]:
    from ottla.spark.pipeline.task_errors import told_by_tasks

    with told_by_tasks():
        done = rows.mapInArrow(WrittenRows(writer), "result binary").collect()
    return [pickle.loads(row["result"]) for row in done]


def transformed(pipeline: Pipeline, session: SparkSession, source: DataFrame) -> DataFrame:
    """What the pipeline's query or function makes of the source."""
    if pipeline.python is not None:
        made: DataFrame = load_function(pipeline, session)(source)
        return made
    if pipeline.sql is None:
        return source
    source.createOrReplaceTempView("source")
    return session.sql(pipeline.sql)


def load_function(pipeline: Pipeline, session: SparkSession) -> Callable[[Any], Any]:
    """The function that the file names; its module is looked for beside the file first, and sent to the executors."""
    assert pipeline.python is not None
    name, _, function = pipeline.python.partition(":")
    beside = str(pipeline.file.parent)
    if beside not in sys.path:
        sys.path.insert(0, beside)
    try:
        module = importlib.import_module(name)
        found: Callable[[Any], Any] = getattr(module, function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{pipeline.file}: [transform] python: {error}") from None
    file = getattr(module, "__file__", None)
    if file and os.path.dirname(os.path.abspath(file)) == beside:
        session.addArtifacts(file, pyfile=True)
    return found


def _remove_if_empty(folder: str) -> None:
    try:
        Path(folder).rmdir()
    except OSError:
        return
