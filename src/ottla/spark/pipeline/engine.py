"""How a batch's splits become rows at the target: straight from tasks, or through Spark SQL."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.spark.pipeline.table_files import Layout
from ottla.spark.pipeline.tasks import Destination, Landing, Reading, Result, Tasks, in_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StraightEngine:
    """No transform: a task reads, decodes and writes. Rows stay in Python's Arrow from end to end."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def land(self, reading: Reading, destination: Destination, bad_layout: Layout) -> list[Result]:
        return self._tasks.run(Landing(reading, destination, bad_layout), len(reading.splits))


class SparkTasks:
    """Tasks on Spark: the frame holds one number for each task, so the JVM sees a number in and a receipt out."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, work: Callable[[int], Result], count: int) -> list[Result]:
        if not count:
            return []
        numbers = self._session.range(0, count, 1, count)
        rows = numbers.mapInArrow(in_partition(work), "result binary").collect()
        return [pickle.loads(row["result"]) for row in rows]
