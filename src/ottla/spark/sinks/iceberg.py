"""Iceberg tables, through pyiceberg: a snapshot holds the files, the table's properties the offsets and the batch.

The catalog is a SQLite file beside the table, unless another is named. Properties and snapshot change in one commit of
the catalog; one that was made beside it makes ours fail, and the batch is looked for again before a second try.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import IdentityTransform

from ottla.errors import PipelineError
from ottla.spark.offsets import render
from ottla.spark.sinks.base import Commit, LastCommit, checked_partitions, growth, prefix_of
from ottla.spark.sinks.iceberg_compaction import compact_table
from ottla.spark.tables.table_files import Layout

_ATTEMPTS = 5
_FACTS = "ottla.commit."  # and the application's id: a property of the table
# Each commit writes the table's whole metadata anew; the last ones are enough.
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergSink:
    def __init__(
        self, path: str, name: str, catalog_uri: str, partition_by: Sequence[str], *, evolve: bool
    ) -> None:
        self.path = path
        self._name = name
        self._catalog_uri = catalog_uri
        self._partition_by = tuple(partition_by)
        self._evolve = evolve

    def _catalog(self) -> Catalog:
        if self._catalog_uri.startswith("sqlite:///"):
            os.makedirs(os.path.dirname(self._catalog_uri.removeprefix("sqlite:///")), exist_ok=True)
        warehouse = f"file://{os.path.dirname(self.path)}"
        kind = "rest" if self._catalog_uri.startswith("http") else "sql"
        return load_catalog("ottla", type=kind, uri=self._catalog_uri, warehouse=warehouse)

    def _table(self) -> Table | None:
        if self._catalog_uri.startswith("sqlite:///") and not os.path.exists(
            self._catalog_uri.removeprefix("sqlite:///")
        ):
            return None
        try:
            return self._catalog().load_table(self._name)
        except NoSuchTableError:
            return None

    def last(self, app_id: str) -> LastCommit | None:
        table = self._table()
        return None if table is None else _last_commit(table, app_id)

    def layout(self, app_id: str, batch: int) -> Layout:
        table = self._table()
        schema = None
        if table is not None:
            names = [table.schema().find_column_name(field.source_id) or "" for field in table.spec().fields]
            checked_partitions(names, self._partition_by, self.path)
            schema = _arrow_schema(table)
        place = os.path.join(self.path, "data")
        return Layout(place, prefix_of(app_id, batch), self._partition_by, True, schema, least_int=True)

    def commit(self, commit: Commit) -> None:
        if commit.schema is None and self._table() is None:
            return  # nothing was ever read: no columns to make a table of
        for attempt in range(_ATTEMPTS):
            table = self._table() or self._create(commit.schema)
            landed = _last_commit(table, commit.app_id)
            if landed is not None and landed.batch >= commit.batch:
                return
            try:
                self._commit(table, commit)
            except CommitFailedException as error:
                if attempt + 1 == _ATTEMPTS:
                    raise PipelineError(
                        f"{self.path}: batch {commit.batch} was not committed: {error}"
                    ) from error
                time.sleep(0.1 * 2**attempt)
            else:
                return

    def _create(self, schema: pa.Schema | None) -> Table:
        assert schema is not None
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        rows = pa.schema([field.with_nullable(True) for field in schema])
        making = catalog.create_table_transaction(
            self._name, rows, location=f"file://{self.path}", properties=_PROPERTIES
        )
        with making, making.update_spec() as spec:
            for name in self._partition_by:
                spec.add_field(name, IdentityTransform(), name)
        return catalog.load_table(self._name)

    def _commit(self, table: Table, commit: Commit) -> None:
        # pyiceberg would try again by itself, and land a batch that somebody else landed meanwhile.
        table.metadata.properties["commit.retry.num-retries"] = "0"
        facts = json.dumps(json.loads(commit.as_json()) | {"committed_ms": int(time.time() * 1000)})
        properties = {
            "ottla.app": commit.app_id,
            "ottla.batch": str(commit.batch),
            "ottla.offsets": render(commit.end.offsets),
        }
        with table.transaction() as change:
            if commit.schema is not None:
                self._add_columns(change, _arrow_schema(table), commit.schema)
            # Without files too: it is the snapshot that fails if somebody else made one meanwhile.
            place = os.path.join(self.path, "data")
            change.add_files(
                [f"file://{os.path.join(place, file.path)}" for file in commit.files],
                properties,
                check_duplicate_files=False,
            )
            change.set_properties({_FACTS + commit.app_id: facts})

    def _add_columns(self, change: Transaction, table: pa.Schema, rows: pa.Schema) -> None:
        grown = growth(table, rows, evolve=self._evolve, where=self.path)
        if grown.columns:
            with change.update_schema() as schema:
                schema.union_by_name(pa.schema(grown.columns))

    def compact(self) -> str:
        table = self._table()
        return compact_table(table, self.path) if table is not None else "there is no table yet"

    def schema(self) -> pa.Schema | None:
        table = self._table()
        return None if table is None else _arrow_schema(table)

    def row_count(self) -> int:
        table = self._table()
        return 0 if table is None else sum(task.file.record_count for task in table.scan().plan_files())

    def active_files(self) -> list[str]:
        table = self._table()
        return [] if table is None else [_local(task.file.file_path) for task in table.scan().plan_files()]


def _last_commit(table: Table, app_id: str) -> LastCommit | None:
    found = table.properties.get(_FACTS + app_id)
    if found is None:
        return None
    facts: dict[str, Any] = json.loads(found)
    return LastCommit(facts["batch"], facts)


def _arrow_schema(table: Table) -> pa.Schema:
    """The table's columns as rows come in: pyiceberg says large_string where it cannot know."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema().as_arrow()])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind


def _local(uri: str) -> str:
    return uri.removeprefix("file://")
