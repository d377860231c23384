"""What every sink knows of a batch, and what a table must take up to hold it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from ottla.errors import ConfigError, PipelineError
from ottla.spark.offsets import from_nested, to_nested
from ottla.spark.read.stream import Position
from ottla.spark.tables.ddl import type_name
from ottla.spark.tables.growth import additions, union
from ottla.spark.tables.names import told, without_clashes
from ottla.spark.tables.table_files import Layout, NewFile


@dataclass(frozen=True)
class Commit:
    """One batch, ready to become part of a table."""

    app_id: str
    batch: int
    end: Position  # where the next batch starts
    files: Sequence[NewFile] = ()
    schema: pa.Schema | None = None  # of the rows, partition columns included
    facts: dict[str, Any] = field(default_factory=dict)  # rows, bad rows, times: for `status`

    def as_json(self) -> str:
        where = {"offsets": to_nested(self.end.offsets), "topic_ids": self.end.topic_ids}
        return json.dumps({"app": self.app_id, "batch": self.batch, **where, **self.facts})


@dataclass(frozen=True)
class LastCommit:
    """The last batch of an application that a table has."""

    batch: int
    facts: dict[str, Any] = field(default_factory=dict)  # empty where the table forgot all but the number

    @property
    def position(self) -> Position | None:
        if "offsets" not in self.facts:
            return None
        return Position(from_nested(self.facts["offsets"]), self.facts.get("topic_ids", {}))


class TableSink(Protocol):
    """A table that tasks write files for."""

    path: str

    def last(self, app_id: str) -> LastCommit | None: ...

    def layout(self, app_id: str, batch: int) -> Layout: ...

    def commit(self, commit: Commit) -> None:
        """Make the files part of the table, once: a batch that the table has is left alone."""

    def compact(self) -> str:
        """Merge small files; what was done, in words."""

    def schema(self) -> pa.Schema | None:
        """The table's columns, or None where there is no table yet."""

    def active_files(self) -> list[str]: ...

    def row_count(self) -> int: ...


def prefix_of(app_id: str, batch: int) -> str:
    """How names of a batch's files begin: enough to find those that no commit took."""
    return f"part-{app_id[:8]}-{batch:09d}"


@dataclass(frozen=True)
class Growth:
    """What a table has to take up before it can hold some rows."""

    columns: list[pa.Field]  # as they are to be: new ones, and those that get fields inside
    names: list[str]  # of what is new; `column.field` inside of others


def growth(table: pa.Schema, rows: pa.Schema, *, evolve: bool, where: str) -> Growth:
    """What rows have and a table has not; an error where it may not take that."""
    columns: list[pa.Field] = []
    found: list[tuple[str, pa.DataType]] = []
    for column in rows:
        at = table.get_field_index(column.name)
        if at < 0:
            columns.append(column.with_nullable(True))
            found.append((column.name, column.type))
            continue
        known = table.field(at)
        kind = union(known.type, column.type)
        if not _same(kind, column.type):
            there, here = type_name(known.type), type_name(column.type)
            raise PipelineError(f"{where}: column {column.name} is {there} there, and {here} in the new rows")
        if inside := list(additions(column.name, known.type, kind)):
            columns.append(known.with_type(kind))
            found += inside
    _check_case(table, columns, where)
    if found and not evolve:
        names = ", ".join(f"{name} {type_name(kind)}" for name, kind in found)
        raise PipelineError(f"{where} has no column for: {names}; evolve_schema = true adds new columns")
    return Growth(columns, [name for name, _ in found])


def _check_case(table: pa.Schema, columns: Sequence[pa.Field], where: str) -> None:
    """A table that has such names already was made by somebody else, or long ago: it gets no more of them."""
    before = without_clashes(table)[1]
    grown = {field.name: field for field in [*table, *columns]}
    new = {
        name: kept
        for name, kept in without_clashes(pa.schema(grown.values()))[1].items()
        if name not in before
    }
    if new:
        raise PipelineError(f"{where}: {told(new)}; rename one of them")


def _same(left: pa.DataType, right: pa.DataType) -> bool:
    return left == right or type_name(left) == type_name(right)


def checked_partitions(there: Sequence[str], wanted: Sequence[str], where: str) -> None:
    if list(there) != list(wanted):
        raise ConfigError(
            f"{where} is partitioned by {list(there)}, not by {list(wanted)}: change partition_by, or the path"
        )
