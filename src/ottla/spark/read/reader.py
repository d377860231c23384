"""The reader of spark.read.format("ottla"): plans on the driver, reads in the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.options import ReadOptions
from ottla.spark.read import plan
from ottla.spark.transport.open_transport import open_transport


class BatchReader(DataSourceReader):
    """Reads what is there when the query is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with closing(open_transport(options)) as transport:
            start, end = plan.starting_offsets(options, transport), plan.latest_offsets(options, transport)
            return [InputPartition(split) for split in plan.plan_splits(options, start, end, transport)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark makes one partition where there is none
            return iter(())
        return plan.read_split(self._options, partition.value)
