"""The reader of spark.readStream.format("ottla"): plans micro-batches on the driver, reads them in the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.spark.options import ReadOptions
from ottla.spark.read import plan
from ottla.spark.read.stream import Position, StreamPlan


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark keeps one of these on the driver for a query's life, and gives a copy without a plan to the tasks."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._opened: StreamPlan | None = None

    @property
    def _plan(self) -> StreamPlan:
        if self._opened is None:
            self._opened = StreamPlan(self._options)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_opened": None}

    def initialOffset(self) -> dict[str, Any]:
        return self._plan.initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark knows only one limit at a time, and asks to have it ignored by giving ReadAllAvailable."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        is_limited = not isinstance(limit, ReadAllAvailable)
        position = Position.from_json(start)
        end = self._plan.next(position, is_limited=is_limited)
        # Word for word the same where nothing is new: Spark compares texts.
        return position.to_json() if end == position else self._plan.cut(position, end).to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._plan.newest().to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._plan.stop_at_the_end_of_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        splits = self._plan.splits(Position.from_json(start), Position.from_json(end))
        return [InputPartition(split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return plan.read_split(self._options, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Progress is in the checkpoint. A consumer group gets it from a listener, which hears of the last batch."""

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
