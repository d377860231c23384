"""The target that a pipeline names: a table, a topic, or the console."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.tasks import FileWriter, RowWriter, TaskResult
from ottla.spark.sinks.base import Commit, LastCommit, TableSink, prefix_of
from ottla.spark.tables.names import check_names


class Target(Protocol):
    def last(self, app_id: str) -> LastCommit | None: ...

    def writer(self, app_id: str, batch: int) -> RowWriter: ...

    def commit(self, commit: Commit, results: Sequence[TaskResult]) -> None: ...

    def give_up(self, app_id: str) -> None:
        """Abort what an unfinished batch holds open (a topic's transactions), so that no reader waits for it."""

    def sweep(self, app_id: str, batch: int) -> None:
        """Remove what unfinished attempts at a batch left behind, now that it is committed."""

    def compact(self) -> str: ...


class TableTarget:
    """A table: tasks write files, the sink commits them."""

    def __init__(self, sink: TableSink, path: str) -> None:
        self.sink = sink
        self._path = path

    def last(self, app_id: str) -> LastCommit | None:
        return self.sink.last(app_id)

    def writer(self, app_id: str, batch: int) -> FileWriter:
        return FileWriter(self.sink.layout(app_id, batch))

    def commit(self, commit: Commit, results: Sequence[TaskResult]) -> None:
        if commit.schema is not None:
            check_names(commit.schema)
        self.sink.commit(commit)

    def give_up(self, app_id: str) -> None:
        """Files that no commit names disturb nobody."""

    def sweep(self, app_id: str, batch: int) -> None:
        prefix, active = prefix_of(app_id, batch), set(self.sink.active_files())
        for folder, _, names in os.walk(self._path):
            for name in names:
                path = os.path.join(folder, name)
                if name.startswith(prefix) and path not in active:
                    os.unlink(path)

    def compact(self) -> str:
        return self.sink.compact()


def make_target(pipeline: Pipeline, checkpoint: Checkpoint) -> Target:
    sink = pipeline.sink
    if sink.format == "console":
        from ottla.spark.pipeline.targets.console import ConsoleTarget

        return ConsoleTarget(checkpoint)
    if sink.format == "topic":
        from ottla.spark.pipeline.targets.topic import TopicTarget

        return TopicTarget(pipeline, checkpoint)
    return TableTarget(table_sink(pipeline), sink.path)


def table_sink(pipeline: Pipeline) -> TableSink:
    sink = pipeline.sink
    return _table(pipeline, sink.path, sink.table, sink.partition_by, evolve=sink.evolve_schema)


def quarantine_sink(pipeline: Pipeline) -> TableSink:
    """The quarantine table: of the same kind as the sink's, and Parquet for sinks that are no tables."""
    return _table(pipeline, pipeline.decode.quarantine, f"{pipeline.sink.table}_quarantine", (), evolve=True)


def _table(
    pipeline: Pipeline, path: str, name: str, partition_by: Sequence[str], *, evolve: bool
) -> TableSink:
    match pipeline.sink.format:
        case "delta":
            from ottla.spark.sinks.delta import DeltaSink

            return DeltaSink(path, partition_by, evolve=evolve)
        case "iceberg":
            from ottla.spark.sinks.iceberg import IcebergSink

            return IcebergSink(path, name, pipeline.sink.catalog, partition_by, evolve=evolve)
        case _:
            from ottla.spark.sinks.parquet import ParquetSink

            return ParquetSink(path, partition_by, evolve=evolve)
