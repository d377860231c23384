"""Another topic: each task writes its rows and the batch's number in one transaction, which the driver commits.

A task that comes again after a crash finds the number if its transaction was committed; otherwise it ends that one.

Rows with a column `value` go out as they are (`key`, `headers`, `topic` and `partition` beside it); other rows as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.spark.options import WriteOptions, write_options
from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.targets.console import last_of
from ottla.spark.pipeline.tasks import TaskResult
from ottla.spark.sinks.base import Commit, LastCommit
from ottla.spark.write.packing import check_columns
from ottla.spark.write.sending import Turn, end_held, give_up, send_rows

_WRITTEN = ("key", "value", "headers")


@dataclass(frozen=True)
class RecordWriter:
    """Records of a topic."""

    options: WriteOptions
    app_id: str
    batch: int

    def write(self, tables: Iterable[pa.Table], task: int) -> TaskResult:
        # Held: a JVM that dies only looks like the end of the rows, so the driver says when it is all there.
        turn = Turn(self.app_id, task, self.batch)
        sent = send_rows(self.options, _records(tables, self.options.topic), turn, hold=True)
        return TaskResult(sent.rows, sent=sent)


class TopicTarget:
    def __init__(self, pipeline: Pipeline, checkpoint: Checkpoint) -> None:
        sink = pipeline.sink
        given = {"kafka.bootstrap.servers": sink.bootstrap, "topic": sink.topic}
        self._options = write_options(given | sink.options)
        self._checkpoint = checkpoint

    def last(self, app_id: str) -> LastCommit | None:
        return last_of(self._checkpoint)

    def writer(self, app_id: str, batch: int) -> RecordWriter:
        return RecordWriter(self._options, app_id, batch)

    def commit(self, commit: Commit, results: Sequence[TaskResult]) -> None:
        sent = [result.sent for result in results if result.sent is not None]
        end_held(self._options, sent, committed=True)
        self._checkpoint.save_commit(commit.batch, commit.as_json())

    def give_up(self, app_id: str) -> None:
        give_up(self._options, app_id)

    def sweep(self, app_id: str, batch: int) -> None:
        """A transaction that was not committed is aborted by the task that comes again."""

    def compact(self) -> str:
        return "a topic has no files to merge: set cleanup.policy=compact for that"


def _records(tables: Iterable[pa.Table], topic: str | None) -> Iterator[pa.RecordBatch]:
    for table in tables:
        if "value" in table.schema.names:
            # A source's own topic and partition are where a row comes from, not where it goes.
            rows = table.select([name for name in _WRITTEN if name in table.schema.names])
        else:
            rows = pa.table({"value": pa.array(_as_json(table), pa.string())})
        check_columns(rows.schema, topic)
        yield from rows.combine_chunks().to_batches()


def _as_json(table: pa.Table) -> list[str]:
    return [json.dumps(row, default=_plain, ensure_ascii=False) for row in table.to_pylist()]


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
