"""The reader of spark.read.format("ottla"): plans on the driver, reads in the tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark import plan
from ottla.spark.options import ReadOptions


class BatchReader(DataSourceReader):
    """Reads what is there when the query is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        start, end = plan.starting_offsets(self._options), plan.latest_offsets(self._options)
        return [InputPartition(split) for split in plan.plan_splits(self._options, start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark makes one partition where there is none
            return iter(())
        return plan.read_split(self._options, partition.value)
