"""How a batch's splits become rows at the target: straight from tasks, or through Spark SQL where that is asked for."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.spark.pipeline.check_syntax import Unsupported
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.decode.rows import make_decoder, row_schema
from ottla.spark.pipeline.expect import Checks
from ottla.spark.pipeline.tasks import Destination, Landing, Reading, TaskResult, Tasks, in_partition
from ottla.spark.tables.table_files import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StraightEngine:
    """No transform: a task reads, decodes and writes. Rows stay in Python's Arrow from end to end."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def land(self, reading: Reading, destination: Destination, bad_layout: Layout) -> list[TaskResult]:
        return self._tasks.run(Landing(reading, destination, bad_layout), len(reading.splits))


class SparkTasks:
    """Tasks on Spark: the frame holds one number for each task, so the JVM sees a number in and a receipt out."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, work: Callable[[int], TaskResult], count: int) -> list[TaskResult]:
        if not count:
            return []
        numbers = self._session.range(0, count, 1, count)
        from ottla.spark.pipeline.task_errors import told_by_tasks

        with told_by_tasks():
            rows = numbers.mapInArrow(in_partition(work), "result binary").collect()
        return [pickle.loads(row["result"]) for row in rows]


class SparkEngine:
    """On Spark; through its SQL only with a transform, or for checks that Arrow cannot evaluate."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, note: Callable[[str], None]) -> None:
        self._session = session
        self._pipeline = pipeline
        self._note = note
        self._straight = StraightEngine(SparkTasks(session))
        self._told = False

    def land(self, reading: Reading, destination: Destination, bad_layout: Layout) -> list[TaskResult]:
        from ottla.spark.pipeline.sql_engine import SqlBatch

        spark_checks = self._needs_spark_checks(reading)
        if not (self._pipeline.has_transform or spark_checks):
            return self._straight.land(reading, destination, bad_layout)
        batch = SqlBatch(self._session, self._pipeline, reading, bad_layout, spark_checks=spark_checks)
        return batch.land(destination)

    def _needs_spark_checks(self, reading: Reading) -> bool:
        if not reading.expectations:
            return False
        columns = make_decoder(reading.decode, reading.schema, grow=False).columns
        try:
            Checks(reading.expectations, row_schema(columns, reading.decode.metadata))
        except Unsupported as reason:
            if not self._told:
                self._note(f"an expectation needs Spark SQL, so rows go through the JVM: {reason}")
                self._told = True
            return True
        return False
