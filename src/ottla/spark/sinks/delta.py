"""Delta tables, through deltalake: a commit holds the files, the offsets, and a transaction id that Delta keeps.

Delta refuses a second commit with the same application's id beside it, so of two drivers only one can land a batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.schema import Schema
from deltalake.transaction import AddAction

from ottla.errors import PipelineError
from ottla.spark.sinks.base import Commit, LastCommit, checked_partitions, growth, prefix_of
from ottla.spark.tables.table_files import Layout, NewFile
from ottla.words import counted, noun

_FACTS = "ottla"  # the key of the commit's own metadata
_LOOK_BACK = 100  # commits, to find the last one of ours among those of others


class DeltaSink:
    def __init__(self, path: str, partition_by: Sequence[str], *, evolve: bool) -> None:
        self.path = path
        self._partition_by = tuple(partition_by)
        self._evolve = evolve

    def _table(self) -> DeltaTable | None:
        return DeltaTable(self.path) if DeltaTable.is_deltatable(self.path) else None

    def last(self, app_id: str) -> LastCommit | None:
        table = self._table()
        batch = table.transaction_version(app_id) if table is not None else None
        if table is None or batch is None:
            return None
        for entry in table.history(_LOOK_BACK):
            facts = json.loads(entry.get(_FACTS, "{}"))
            if facts.get("app") == app_id and facts.get("batch") == batch:
                return LastCommit(
                    batch, facts | {"version": entry["version"], "committed_ms": entry["timestamp"]}
                )
        return LastCommit(batch)

    def layout(self, app_id: str, batch: int) -> Layout:
        table = self._table()
        schema = None
        if table is not None:
            checked_partitions(table.metadata().partition_columns, self._partition_by, self.path)
            schema = _arrow_schema(table)
        return Layout(self.path, prefix_of(app_id, batch), self._partition_by, schema=schema)

    def commit(self, commit: Commit) -> None:
        table = self._table()
        if table is None:
            if commit.schema is None:
                return  # nothing was ever read: no columns to make a table of
            schema = Schema.from_arrow(_nullable(commit.schema))
            table = DeltaTable.create(self.path, schema, "ignore", list(self._partition_by))
        if (landed := table.transaction_version(commit.app_id)) is not None and landed >= commit.batch:
            return
        if commit.schema is not None:
            self._add_columns(table, commit.schema)
        properties = CommitProperties(
            custom_metadata={_FACTS: commit.as_json()},
            app_transactions=[Transaction(commit.app_id, commit.batch, int(time.time() * 1000))],
        )
        try:
            table.create_write_transaction(
                [_action(file) for file in commit.files],
                "append",
                table.schema(),
                list(self._partition_by),
                commit_properties=properties,
            )
        except CommitFailedError as error:
            raise PipelineError(f"{self.path}: batch {commit.batch} was not committed: {error}") from error

    def _add_columns(self, table: DeltaTable, rows: pa.Schema) -> None:
        grown = growth(_arrow_schema(table), rows, evolve=self._evolve, where=self.path)
        if grown.columns:
            table.alter.add_columns(list(Schema.from_arrow(pa.schema(grown.columns)).fields))
            table.update_incremental()

    def compact(self) -> str:
        table = self._table()
        if table is None:
            return "there is no table yet"
        done = table.optimize.compact()
        gone = table.vacuum(dry_run=False)
        return (
            f"{counted(done['numFilesRemoved'], 'file')} became {done['numFilesAdded']:,}; "
            f"{counted(len(gone), 'file')} that no commit of the last week names {noun(len(gone), 'was', 'were')}"
            " deleted"
        )

    def schema(self) -> pa.Schema | None:
        table = self._table()
        return _arrow_schema(table) if table is not None else None

    def row_count(self) -> int:
        table = self._table()
        return table.count() if table is not None else 0

    def active_files(self) -> list[str]:
        table = self._table()
        return list(table.file_uris()) if table is not None else []


def _action(file: NewFile) -> AddAction:
    return AddAction(file.path, file.size_bytes, file.partition, int(time.time() * 1000), True, file.stats)


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    """The table's columns as the types that rows come in, not as views."""
    schema: Any = pa.schema(table.schema().to_arrow())
    return schema


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
