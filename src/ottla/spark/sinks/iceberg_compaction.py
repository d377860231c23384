"""Small data files of an Iceberg table merged into larger ones, in one snapshot that replaces them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from ottla.spark.tables.reshape import aligned
from ottla.words import counted

_SMALL_BYTES = 64 << 20
_TARGET_BYTES = 256 << 20


def compact_table(table: Table, path: str) -> str:
    groups: dict[object, list[DataFile]] = {}
    for task in table.scan().plan_files():
        if task.delete_files:
            return "the table has row deletes; compact it with the engine that made them"
        if task.file.file_size_in_bytes < _SMALL_BYTES:
            groups.setdefault(str(task.file.partition), []).append(task.file)
    small = [files for files in groups.values() if len(files) > 1]
    if not small:
        return "there are no small files to merge"
    schema = table.schema().as_arrow()
    removed: list[DataFile] = []
    merged: list[str] = []
    for files in small:
        for chunk in _chunks(files):
            merged.append(_merge(path, chunk, schema))
            removed += chunk
    with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
        for file in removed:
            snapshot.delete_data_file(file)
        for name in merged:
            snapshot.append_data_file(
                parquet_file_to_data_file(table.io, change.table_metadata, f"file://{name}")
            )
    return f"{counted(len(removed), 'file')} became {len(merged):,}"


def _chunks(files: list[DataFile]) -> Iterable[list[DataFile]]:
    """Files of one partition in groups of about the target size."""
    chunk: list[DataFile] = []
    for file in sorted(files, key=lambda one: one.file_path):
        chunk.append(file)
        if sum(one.file_size_in_bytes for one in chunk) >= _TARGET_BYTES:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _merge(path: str, files: list[DataFile], schema: pa.Schema) -> str:
    """Beside the first of them, so that it lies in the same partition's directory."""
    sources = [file.file_path.removeprefix("file://") for file in files]
    target = os.path.join(os.path.dirname(sources[0]), f"part-compacted-{uuid.uuid4().hex}.parquet")
    columns = pa.schema([pa.field(field.name, field.type) for field in schema])
    with pq.ParquetWriter(target, columns, compression="snappy") as writer:
        for source in sources:
            writer.write_table(aligned(pq.read_table(source, partitioning=None), columns))
    return target
