"""The Parquet files of a table, written by tasks: one for each combination of partition values, under fresh names.

A file that no commit names does not exist for the table's readers. So a task that is killed, or runs twice, leaves at
most files that nobody sees; names hold the batch, so that such files can be found and removed later.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ottla.errors import ConfigError
from ottla.spark.tables.ddl import type_name
from ottla.spark.tables.exact import mapped
from ottla.spark.tables.file_stats import file_stats
from ottla.spark.tables.growth import union
from ottla.spark.tables.reshape import reshaped

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_UNSAFE = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")  # what Hive writes as %XX in directory names
_ROW_GROUP_ROWS = 128 * 1024
_BUFFERED_BYTES = 256 << 20  # of all open files of a task together
_MAX_OPEN_FILES = 200


@dataclass(frozen=True)
class Layout:
    """Where tasks write, and how; made by the sink."""

    directory: str
    prefix: str
    partition_by: tuple[str, ...] = ()
    keeps_partition_columns: bool = False
    schema: pa.Schema | None = None  # what the table has by now: columns of the same name are cast to it
    least_int: bool = False  # whether the table knows no integers smaller than an int


@dataclass(frozen=True)
class NewFile:
    path: str  # under the layout's directory
    rows: int
    size_bytes: int
    partition: dict[str, str | None] = field(default_factory=dict)
    stats: str = "{}"


class TableWriter:
    """Takes tables of rows, gives the files they are in."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._open: dict[tuple[str | None, ...], _File] = {}
        self._done: list[NewFile] = []
        self.schema: pa.Schema | None = None  # of all rows, partition columns included

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows and self.schema is not None:
            return
        rows = fitted(_with_ints(rows) if self._layout.least_int else rows, self._layout.schema)
        if self.schema is None or not self.schema.equals(rows.schema):
            self._close_files()
            self.schema = rows.schema
            missing = set(self._layout.partition_by) - set(rows.schema.names)
            if missing:
                raise ConfigError(f"partition_by: there is no column {min(missing)} in {rows.schema.names}")
        for key, part in _parts(rows, self._layout.partition_by) if rows.num_rows else ():
            self._file(key, part).add(part)
        self._bound_memory()

    def close(self) -> list[NewFile]:
        self._close_files()
        return self._done

    def _file(self, key: tuple[str | None, ...], part: pa.Table) -> _File:
        if key not in self._open:
            if len(self._open) >= _MAX_OPEN_FILES:
                self._close_files()
            self._open[key] = _File(self._layout, key)
        return self._open[key]

    def _bound_memory(self) -> None:
        if sum(file.buffered_bytes for file in self._open.values()) > _BUFFERED_BYTES:
            for file in self._open.values():
                file.flush()

    def _close_files(self) -> None:
        self._done += [file.close() for file in self._open.values()]
        self._open.clear()


class _File:
    def __init__(self, layout: Layout, key: tuple[str | None, ...]) -> None:
        self._layout = layout
        self._values = dict(zip(layout.partition_by, key, strict=True))
        folders = [_folder(name, value) for name, value in self._values.items()]
        self._path = os.path.join(*folders, f"{layout.prefix}-{uuid.uuid4().hex}.parquet")
        self._full = os.path.join(layout.directory, self._path)
        self._buffer: list[pa.Table] = []
        self._buffered_rows = 0
        self.buffered_bytes = 0
        self._rows = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> None:
        if self._layout.partition_by and not self._layout.keeps_partition_columns:
            rows = rows.drop_columns(list(self._layout.partition_by))
        self._buffer.append(rows)
        self._buffered_rows += rows.num_rows
        self.buffered_bytes += rows.nbytes
        if self._buffered_rows >= _ROW_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._buffer:
            return
        rows = pa.concat_tables(self._buffer)
        if self._writer is None:
            os.makedirs(os.path.dirname(self._full), exist_ok=True)
            self._writer = pq.ParquetWriter(self._full, rows.schema, compression="snappy")
        self._writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)
        self._rows += rows.num_rows
        self._buffer, self._buffered_rows, self.buffered_bytes = [], 0, 0

    def close(self) -> NewFile:
        self.flush()
        assert self._writer is not None
        self._writer.close()
        with open(self._full, "rb") as file:
            os.fsync(file.fileno())
        stats = file_stats(pq.read_metadata(self._full))
        return NewFile(self._path, self._rows, os.path.getsize(self._full), self._values, json.dumps(stats))


def _with_ints(rows: pa.Table) -> pa.Table:
    """Rows with an int wherever there is a byte or a short."""

    def wider(kind: pa.DataType) -> pa.DataType:
        return pa.int32() if kind in (pa.int8(), pa.int16()) else kind

    fields = [field.with_type(mapped(field.type, wider)) for field in rows.schema]
    columns = [reshaped(column, field.type) for column, field in zip(rows.columns, fields, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def fitted(rows: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """Rows whose columns have the types that the table has for them; what it has not stays as it is."""
    for index, name in enumerate(rows.schema.names if schema is not None else ()):
        at = schema.get_field_index(name) if schema is not None else -1
        if at < 0 or schema is None:
            continue
        kind = union(schema.field(at).type, rows.schema.field(index).type)
        if rows.schema.field(index).type == kind:
            continue
        try:
            rows = rows.set_column(index, name, reshaped(rows.column(index), kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            found = type_name(rows.schema.field(index).type)
            raise ConfigError(
                f"column {name} is {found}, but {type_name(kind)} in the table, and does not fit: {error}"
            ) from None
    return rows


def _parts(rows: pa.Table, names: tuple[str, ...]) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
    """Rows by partition values. They are sorted by these once, then cut where one of them changes."""
    if not names:
        yield (), rows
        return
    columns = [rows.column(name).combine_chunks() for name in names]
    changes = _changes(columns)
    if len(changes) > 1:
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in names]))
        columns = [rows.column(name).combine_chunks() for name in names]
        changes = _changes(columns)
    ends = [*changes[1:], rows.num_rows]
    for start, end in zip(changes, ends, strict=True):
        key = tuple(_text(column[start]) for column in columns)
        yield key, rows.slice(start, end - start)


def _changes(columns: list[pa.Array]) -> list[int]:
    """Where a run of equal values begins."""
    changed = np.zeros(len(columns[0]), dtype=bool)
    changed[0] = True
    for column in columns:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        changed[1:] |= codes[1:] != codes[:-1]
    return [int(at) for at in np.flatnonzero(changed)]


def _text(value: pa.Scalar) -> str | None:
    """A partition value as Delta and Hive write it."""
    found: Any = value.as_py()
    if found is None:
        return None
    if isinstance(found, bool):
        return "true" if found else "false"
    if pa.types.is_timestamp(value.type):
        return str(found.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds"))
    if pa.types.is_decimal(value.type):
        return f"{found:f}"
    if isinstance(found, (bytes, dict, list)):
        raise ConfigError(f"partition_by: a column of type {type_name(value.type)} cannot make directories")
    # An empty text and null are one partition for Hive's directories, and for Delta.
    return str(found) or None


def _folder(name: str, value: str | None) -> str:
    text = NULL_PARTITION if value is None else _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)
    return f"{name}={text}"
