"""`df.writeStream.format("ottla")`: every row of a stream into topics once, however often its driver dies.

The query's id is in its checkpoint and stays the same when it is started again; a batch that was not finished comes
again with the same id and, from the same offsets, the same rows in the same tasks. sending.py says how a task that was
done is passed over. Tasks leave their transactions open; they are ended here when all tasks are done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.spark.options import WriteOptions
from ottla.spark.write.packing import check_columns
from ottla.spark.write.sending import Turn, end_held, give_up, send_rows
from ottla.spark.write.writer import TaskDone, arrow_schema, sent_of, task_context

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Made on the driver; `write` runs in each task."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        check_columns(arrow_schema(schema), options.topic)

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
        """Spark knows only the tasks that were done; the others may have been killed in the middle."""
        sent = sent_of(messages)
        held = [one.held for one in sent if one.held is not None]
        name = Turn.name_of(held[0].transactional_id) if held else _query_id(self._options.checkpoint)
        if name is not None:
            give_up(self._options, name, sent)


def _query_id(checkpoint: str | None) -> str | None:
    """The query's id out of its checkpoint, where that is on a disk of this machine."""
    path = Path((checkpoint or "").removeprefix("file:")) / "metadata"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError):
        return None
    return str(found)
