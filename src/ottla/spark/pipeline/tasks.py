"""What one task does with one split: read, decode, check, write. It runs in an executor's Python, without the JVM."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from ottla.errors import PipelineError
from ottla.spark.options import ReadOptions
from ottla.spark.pipeline.config import Decode, Expectation
from ottla.spark.pipeline.decode.rows import make_decoder
from ottla.spark.pipeline.expect import Checks
from ottla.spark.pipeline.quarantine import QUARANTINE_SCHEMA, quarantined
from ottla.spark.read.plan import read_split
from ottla.spark.read.ranges import Split
from ottla.spark.tables.names import Clashes
from ottla.spark.tables.table_files import Layout, NewFile, TableWriter
from ottla.spark.write.sending import Sent

# Where a row comes from, beside it on its way through Spark: for rows that fail a check there.
HIDDEN = "__ottla_"
HIDDEN_COLUMNS = {
    HIDDEN + name: "value" if name == "bytes" else name for name in QUARANTINE_SCHEMA.names if name != "error"
}


@dataclass(frozen=True)
class TaskInput:
    """From splits to decoded rows: all that a task needs to know."""

    options: ReadOptions
    splits: tuple[Split, ...]
    decode: Decode
    schema: pa.Schema | None
    grow: bool
    expectations: tuple[Expectation, ...]


class RowReader:
    """The good rows of one split; the bad ones are put aside on the way, as the pipeline says."""

    def __init__(self, given: TaskInput, put_aside: Callable[[pa.Table], None]) -> None:
        self._given = given
        self._keep = put_aside
        self._decoder = make_decoder(given.decode, given.schema, grow=given.grow)
        self._checks: Checks | None = None
        self._checked_schema: pa.Schema | None = None
        self.read = 0
        self.bad = 0

    @property
    def columns(self) -> pa.Schema:
        return self._decoder.columns

    @property
    def clashes(self) -> Clashes:
        return self._decoder.clashes

    def rows(self, index: int, origin: bool = False) -> Iterator[pa.Table]:
        """The rows of a split; with `origin`, hidden columns say where each comes from."""
        for raw in read_split(self._given.options, self._given.splits[index]):
            if raw.num_rows:
                self.read += raw.num_rows
                yield self.good(raw, origin)

    def good(self, raw: pa.RecordBatch, origin: bool = False) -> pa.Table:
        decoded = self._decoder.decode(raw)
        rows, bad = decoded.rows, list(decoded.bad)
        failures = self._failures(rows)
        if failures is not None:
            wrong = failures.is_valid()
            places = decoded.kept.filter(wrong).to_pylist()
            bad += zip(places, failures.filter(wrong).to_pylist(), strict=True)
            rows = rows.filter(failures.is_null())
        if bad:
            self._put_aside(raw, sorted(bad))
        for name, column in HIDDEN_COLUMNS.items() if origin else ():
            rows = rows.append_column(name, raw.column(column).take(decoded.kept))
        return rows

    def _failures(self, rows: pa.Table) -> pa.Array | None:
        if not self._given.expectations:
            return None
        if self._checks is None or not rows.schema.equals(self._checked_schema):
            self._checks = Checks(self._given.expectations, rows.schema)
            self._checked_schema = rows.schema
        return self._checks.failures(rows)

    def _put_aside(self, raw: pa.RecordBatch, bad: Sequence[tuple[int, str]]) -> None:
        self.bad += len(bad)
        if self._given.decode.on_error == "fail":
            at, why = bad[0]
            topic, partition, offset = (raw.column(name)[at] for name in ("topic", "partition", "offset"))
            raise PipelineError(f"{topic}-{partition}, offset {offset}: {why}")
        if self._given.decode.on_error == "quarantine":
            self._keep(quarantined(raw, bad))


@dataclass(frozen=True)
class TaskResult:
    """What a task leaves behind."""

    rows: int = 0  # written
    files: list[NewFile] = field(default_factory=list)
    schema: pa.Schema | None = None  # of the rows written
    shown: pa.Table | None = None  # some of them, for people
    sent: Sent | None = None  # a transaction that the driver is to end
    read: int = 0  # records
    bad: int = 0
    bad_files: list[NewFile] = field(default_factory=list)
    decoded: pa.Schema | None = None  # the decoded columns; with new ones, if these are taken up
    clashes: Clashes = field(default_factory=dict)  # names that could not be taken up beside others


class RowWriter(Protocol):
    """Writes a task's rows to the target. A value that travels to the tasks."""

    def write(self, tables: Iterable[pa.Table], task: int) -> TaskResult: ...


@dataclass(frozen=True)
class FileWriter:
    """Files of a table."""

    layout: Layout

    def write(self, tables: Iterable[pa.Table], task: int) -> TaskResult:
        writer = TableWriter(self.layout)
        rows = 0
        for table in tables:
            rows += table.num_rows
            writer.write(table)
        return TaskResult(rows, writer.close(), writer.schema)


def run_split(given: TaskInput, writer: RowWriter, bad_layout: Layout, index: int) -> TaskResult:
    """A whole task: read a split, and write its rows."""
    bad_rows = TableWriter(bad_layout)
    reader = RowReader(given, bad_rows.write)
    result = writer.write(reader.rows(index), index)
    return replace(
        result,
        read=reader.read,
        bad=reader.bad,
        bad_files=bad_rows.close(),
        decoded=reader.columns,
        clashes=reader.clashes,
    )


RESULT_SCHEMA = pa.schema([("result", pa.binary())])


def pickled(results: Sequence[TaskResult]) -> pa.RecordBatch:
    """Results on their way through the JVM."""
    return pa.record_batch(
        [pa.array([pickle.dumps(one) for one in results], pa.binary())], schema=RESULT_SCHEMA
    )
