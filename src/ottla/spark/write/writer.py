"""`df.write.format("ottla")`: rows of a batch query into topics.

At least once, as Spark's own connector. With the option runId exactly once: a run that is repeated with the same id
passes over what its tasks have written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.spark.options import WriteOptions
from ottla.spark.write.packing import check_columns
from ottla.spark.write.sending import Sent, Turn, end_held, give_up, send_rows


@dataclass
class TaskDone(WriterCommitMessage):
    """What a task tells the driver."""

    sent: Sent


class TopicWriter(DataSourceArrowWriter):
    """Made on the driver; `write` runs in each task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("a topic is only appended to: use mode append")
        self._options = options
        check_columns(arrow_schema(schema), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = task_context().partitionId()
        run_id = self._options.run_id
        turn = None if run_id is None else Turn(f"run-{run_id}", task, 0)
        return TaskDone(send_rows(self._options, iterator, turn, sticky=task, hold=True))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        end_held(self._options, sent_of(messages), committed=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.run_id is not None:
            give_up(self._options, f"run-{self._options.run_id}", sent_of(messages))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's types as Arrow's; times are in UTC, as tasks get them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    found: Any = to_arrow_schema(schema, timezone="UTC")
    return found


def sent_of(messages: list[WriterCommitMessage | None]) -> list[Sent]:
    """What the tasks did; those that failed say nothing."""
    return [message.sent for message in messages if isinstance(message, TaskDone)]


def task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows are written by Spark's tasks")
    return context
