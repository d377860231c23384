"""`df.writeStream.format("ottla")`: every row of a stream into topics once, however often its driver dies.

The query's id is in its checkpoint and stays the same when it is started again; a batch that was not finished comes
again with the same id and, from the same offsets, the same rows in the same tasks. sending.py says how a task that was
done is passed over. Tasks leave their transactions open; they are ended here when all tasks are done.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla.spark.options import WriteOptions
from ottla.spark.packing import check_columns
from ottla.spark.sending import Turn, end_held, send_rows
from ottla.spark.writer import TaskDone, sent_of, task_context

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Made on the driver; `write` runs in each task."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        check_columns(to_arrow_schema(schema), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = task_context()
        query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query_id is None or batch_id is None:
            raise RuntimeError("Spark does not say which query and batch this task is of")
        turn = Turn(query_id, context.partitionId(), int(batch_id))
        return TaskDone(send_rows(self._options, iterator, turn, hold=True))

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        end_held(self._options, sent_of(messages), committed=True)

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        end_held(self._options, sent_of(messages), committed=False)
