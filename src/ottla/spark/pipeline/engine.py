"""How a batch's splits become rows at the target: straight from tasks, or through Spark SQL where that is asked for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ottla.spark.pipeline.check_syntax import Unsupported
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.decode.rows import make_decoder, row_schema
from ottla.spark.pipeline.expect import Checks
from ottla.spark.pipeline.tasks import RowWriter, TaskInput, TaskResult, pickled, run_split
from ottla.spark.tables.table_files import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """On Spark; through its SQL only with a transform, or for checks that Arrow cannot evaluate."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, note: Callable[[str], None]) -> None:
        self._session = session
        self._pipeline = pipeline
        self._note = note
        self._told = False

    def run(self, given: TaskInput, writer: RowWriter, bad_layout: Layout) -> list[TaskResult]:
        from ottla.spark.pipeline.sql_engine import SqlBatch

        spark_checks = self._needs_spark_checks(given)
        if not (self._pipeline.has_transform or spark_checks):
            return run_tasks(self._session, partial(run_split, given, writer, bad_layout), len(given.splits))
        batch = SqlBatch(self._session, self._pipeline, given, bad_layout, spark_checks=spark_checks)
        return batch.run(writer)

    def _needs_spark_checks(self, given: TaskInput) -> bool:
        if not given.expectations:
            return False
        columns = make_decoder(given.decode, given.schema, grow=False).columns
        try:
            Checks(given.expectations, row_schema(columns, given.decode.metadata))
        except Unsupported as reason:
            if not self._told:
                self._note(f"an expectation needs Spark SQL, so rows go through the JVM: {reason}")
                self._told = True
            return True
        return False


def run_tasks(session: SparkSession, work: Callable[[int], TaskResult], count: int) -> list[TaskResult]:
    """work(0) ... work(count - 1), each in a task of its own, in any order.

    The frame holds one number for each task: the JVM sees a number go in and a result come out. Rows stay in Python's
    Arrow from end to end.
    """
    from ottla.spark.pipeline.task_errors import told_by_tasks

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pickled([work(index) for index in batch.column(0).to_pylist()])

    if not count:
        return []
    with told_by_tasks():
        rows = session.range(0, count, 1, count).mapInArrow(run, "result binary").collect()
    return [pickle.loads(row["result"]) for row in rows]
