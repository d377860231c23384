"""What one task does with one split: read, decode, check, write. It runs in an executor's Python, without the JVM."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
class Reading:
    """From splits to decoded rows: all that a task needs to know."""

    options: ReadOptions
    splits: tuple[Split, ...]
    decode: Decode
    schema: pa.Schema | None
    grow: bool
    expectations: tuple[Expectation, ...]


class RowReader:
    """The good rows of one split; the bad ones are put aside on the way, as the pipeline says."""

    def __init__(self, reading: Reading, put_aside: Callable[[pa.Table], None]) -> None:
        self._reading = reading
        self._keep = put_aside
        self._decoder = make_decoder(reading.decode, reading.schema, grow=reading.grow)
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
        for raw in read_split(self._reading.options, self._reading.splits[index]):
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
        if not self._reading.expectations:
            return None
        if self._checks is None or not rows.schema.equals(self._checked_schema):
            self._checks = Checks(self._reading.expectations, rows.schema)
            self._checked_schema = rows.schema
        return self._checks.failures(rows)

    def _put_aside(self, raw: pa.RecordBatch, bad: Sequence[tuple[int, str]]) -> None:
        self.bad += len(bad)
        if self._reading.decode.on_error == "fail":
            at, why = bad[0]
            topic, partition, offset = (raw.column(name)[at] for name in ("topic", "partition", "offset"))
            raise PipelineError(f"{topic}-{partition}, offset {offset}: {why}")
        if self._reading.decode.on_error == "quarantine":
            self._keep(quarantined(raw, bad))


@dataclass(frozen=True)
class Taken:
    """What a destination made of a task's rows."""

    rows: int = 0
    files: list[NewFile] = field(default_factory=list)
    schema: pa.Schema | None = None
    shown: pa.Table | None = None  # some of them, for people
    sent: Sent | None = None  # a transaction that the driver is to end


@dataclass(frozen=True)
class TaskResult:
    """What a task leaves behind."""

    taken: Taken
    read: int = 0  # records
    bad: int = 0
    bad_files: list[NewFile] = field(default_factory=list)
    decoded: pa.Schema | None = None  # the decoded columns; with new ones, if these are taken up
    clashes: Clashes = field(default_factory=dict)  # names that could not be taken up beside others


class Destination(Protocol):
    """Where rows go, as a value that travels to the tasks."""

    def take(self, tables: Iterable[pa.Table], task: int) -> Taken: ...


@dataclass(frozen=True)
class Files:
    """Files of a table."""

    layout: Layout

    def take(self, tables: Iterable[pa.Table], task: int) -> Taken:
        writer = TableWriter(self.layout)
        rows = 0
        for table in tables:
            rows += table.num_rows
            writer.write(table)
        return Taken(rows, writer.close(), writer.schema)


@dataclass(frozen=True)
class Landing:
    """Read splits, and hand their rows on."""

    reading: Reading
    destination: Destination
    bad_layout: Layout

    def __call__(self, index: int) -> TaskResult:
        bad_rows = TableWriter(self.bad_layout)
        reader = RowReader(self.reading, bad_rows.write)
        taken = self.destination.take(reader.rows(index), index)
        return TaskResult(taken, reader.read, reader.bad, bad_rows.close(), reader.columns, reader.clashes)


class Tasks(Protocol):
    """Where tasks run."""

    def run(self, work: Callable[[int], TaskResult], count: int) -> list[TaskResult]:
        """work(0) ... work(count - 1), each in a task of its own, in any order."""


class TasksHere:
    """In this process, one after the other: for dry runs and tests."""

    def run(self, work: Callable[[int], TaskResult], count: int) -> list[TaskResult]:
        return [work(index) for index in range(count)]


RESULT_SCHEMA = pa.schema([("result", pa.binary())])


def in_partition(
    work: Callable[[int], TaskResult],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task as mapInArrow wants it: the numbers of splits come in, results go out, and nothing else."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            results = [pickle.dumps(work(index)) for index in batch.column(0).to_pylist()]
            yield pa.record_batch([pa.array(results, pa.binary())], schema=RESULT_SCHEMA)

    return run
