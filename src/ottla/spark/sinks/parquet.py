"""Plain Parquet directories with a commit log, so that rows appear once though a directory knows no transactions.

    _ottla_commits/N.json     the batches, in order: files added and removed, schema, and each application's last batch
    _ottla_staging/           files of batches that are not committed; readers pass over names with an underscore
    day=2026-01-01/part-...   the rows

A batch is committed when its entry in the log is there, which is made in one step and never replaced. Its files are
moved to their places after that; whoever opens the table moves what a killed driver did not. Readers of the log see
whole batches; readers of the bare directory see a batch come file by file, and each row once.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ottla.errors import PipelineError
from ottla.spark.sinks.base import Commit, LastCommit, checked_partitions, growth, prefix_of
from ottla.spark.sinks.parquet_log import CommitLog, Entry
from ottla.spark.tables.ddl import parse_schema, schema_text
from ottla.spark.tables.table_files import Layout, NewFile, TableWriter
from ottla.words import counted

_STAGING = "_ottla_staging"
_SMALL_BYTES = 64 << 20
_TARGET_BYTES = 256 << 20


class ParquetSink:
    def __init__(self, path: str, partition_by: Sequence[str], *, evolve: bool) -> None:
        self.path = path
        self._partition_by = tuple(partition_by)
        self._evolve = evolve
        self._log = CommitLog(path)

    def last(self, app_id: str) -> LastCommit | None:
        self._settle()
        found = self._log.state().apps.get(app_id)
        return None if found is None else LastCommit(found["batch"], found)

    def layout(self, app_id: str, batch: int) -> Layout:
        state = self._log.state()
        if state.schema is not None:
            checked_partitions(state.partition_by, self._partition_by, self.path)
        elif Path(self.path).is_dir() and any(not name.startswith("_") for name in os.listdir(self.path)):
            raise PipelineError(
                f"{self.path} has files that no commit of ottla names; choose an empty directory"
            )
        place = os.path.join(self.path, _STAGING, f"{app_id[:8]}-{batch}")
        return Layout(place, prefix_of(app_id, batch), self._partition_by, schema=self.schema())

    def commit(self, commit: Commit) -> None:
        self._settle()
        state = self._log.state()
        if commit.app_id in state.apps and state.apps[commit.app_id]["batch"] >= commit.batch:
            return
        schema = self._schema(state.schema, commit.schema)
        if schema is None:
            return  # nothing was ever read: no columns to make a table of
        staging = os.path.join(_STAGING, f"{commit.app_id[:8]}-{commit.batch}")
        entry = Entry(
            added=[_file_entry(file, staging) for file in commit.files],
            schema=schema,
            partition_by=list(self._partition_by),
            app=json.loads(commit.as_json()),
        )
        self._log.append(state.version + 1, entry)
        self._settle()
        shutil.rmtree(os.path.join(self.path, staging), ignore_errors=True)

    def _schema(self, known: str | None, rows: pa.Schema | None) -> str | None:
        if rows is None:
            return known
        if known is None:
            return schema_text(pa.schema([field.with_nullable(True) for field in rows]))
        table = parse_schema(known)
        for field in growth(table, rows, evolve=self._evolve, where=self.path).columns:
            at = table.get_field_index(field.name)
            table = table.append(field) if at < 0 else table.set(at, field)
        return schema_text(table)

    def _settle(self) -> None:
        """Do what the newest entry says and its writer did not come to: moves first, then removals."""
        entry = self._log.last()
        if entry is None:
            return
        for file in entry.added:
            target = os.path.join(self.path, file["path"])
            source = os.path.join(self.path, file["staged"])
            if not os.path.exists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                Path(source).replace(target)
        for path in entry.removed:
            if os.path.exists(os.path.join(self.path, path)):
                os.unlink(os.path.join(self.path, path))

    def compact(self) -> str:
        self._settle()
        state = self._log.state()
        groups: dict[str, list[str]] = {}
        for path in sorted(state.files):
            if os.path.getsize(os.path.join(self.path, path)) < _SMALL_BYTES:
                groups.setdefault(os.path.dirname(path), []).append(path)
        small = {folder: paths for folder, paths in groups.items() if len(paths) > 1}
        if not small or state.schema is None:
            return "there are no small files to merge"
        staging = os.path.join(_STAGING, f"compact-{uuid.uuid4().hex}")
        added: list[NewFile] = []
        for folder, paths in small.items():
            added += self._merge(
                os.path.join(self.path, staging, folder), paths, parse_schema(state.schema), folder
            )
        removed = [path for paths in small.values() for path in paths]
        entry = Entry(
            added=[_file_entry(file, staging) for file in added],
            removed=removed,
            schema=state.schema,
            partition_by=state.partition_by,
        )
        self._log.append(state.version + 1, entry)
        self._settle()
        shutil.rmtree(os.path.join(self.path, staging), ignore_errors=True)
        return f"{counted(len(removed), 'file')} became {len(added):,}"

    def _merge(self, place: str, paths: list[str], schema: pa.Schema, folder: str) -> list[NewFile]:
        """The rows of some files of one directory in one file, or more where it would become too large."""
        columns = pa.schema([field for field in schema if field.name not in self._partition_by])
        merged: list[NewFile] = []
        left = list(paths)
        while left:
            writer = TableWriter(Layout(place, "part-compacted"))
            size = 0
            while left and size < _TARGET_BYTES:
                full = os.path.join(self.path, left.pop(0))
                size += os.path.getsize(full)
                for batch in ds.dataset(full, schema=columns, format="parquet").to_batches():
                    writer.write(pa.Table.from_batches([batch], columns))
            merged += writer.close()
        return [NewFile(os.path.join(folder, file.path), file.rows, file.size_bytes) for file in merged]

    def schema(self) -> pa.Schema | None:
        known = self._log.state().schema
        return None if known is None else parse_schema(known)

    def row_count(self) -> int:
        return sum(self._log.state().files.values())

    def active_files(self) -> list[str]:
        return [os.path.join(self.path, path) for path in sorted(self._log.state().files)]


def _file_entry(file: NewFile, staging: str) -> dict[str, Any]:
    return {
        "path": file.path,
        "staged": os.path.join(staging, file.path),
        "rows": file.rows,
        "size": file.size_bytes,
    }
