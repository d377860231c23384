"""From raw records to rows: a whole Arrow batch at a time, and only around a bad record in smaller pieces.

A format decodes a block of values to as many rows, or raises. When a block does not decode, it is cut in two until
the bad values stand alone; so a batch without bad values costs one call, and one with few costs a few dozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.pipeline.config import Decode
from ottla.spark.tables.ddl import TIMESTAMP
from ottla.spark.tables.names import Clashes, check_names
from ottla.spark.tables.reshape import DecodeError, aligned

NO_VALUE = "the record has no value"
_METADATA_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP,
}
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


class Format(Protocol):
    """How values are written. `schema` may grow while blocks are decoded; `clashes` is what it did not take up."""

    schema: pa.Schema
    clashes: Clashes

    def block(self, values: pa.Array) -> pa.Table:
        """One row for each value (none is null), or DecodeError."""


@dataclass(frozen=True)
class Decoded:
    rows: pa.Table  # decoded columns and the metadata asked for, of good records only
    kept: pa.Array  # their places in the raw batch
    bad: list[tuple[int, str]]  # places in the raw batch, and why


class Decoder(Protocol):
    """Raw batches (as `plan.read_split` gives them) to rows."""

    @property
    def columns(self) -> pa.Schema:
        """The decoded columns known by now, without metadata."""

    @property
    def clashes(self) -> Clashes:
        """Names that were met and passed over, because a column has the same in another case."""

    def decode(self, raw: pa.RecordBatch) -> Decoded: ...


class RecordDecoder:
    """`raw` and `utf8`: a row is the record itself, under the names that Spark's Kafka connector gives."""

    def __init__(self, *, text: bool) -> None:
        self._text = text
        self.clashes: Clashes = {}
        value = pa.string() if text else pa.binary()
        kinds = _METADATA_TYPES | {"value": value}
        self.columns = pa.schema([(name, kinds[name]) for name in SOURCE_COLUMNS])

    def decode(self, raw: pa.RecordBatch) -> Decoded:
        rows = pa.table([raw.column(name) for name in SOURCE_COLUMNS], names=list(SOURCE_COLUMNS))
        everything = pa.array(np.arange(raw.num_rows))
        if not self._text:
            return Decoded(rows.cast(self.columns), everything, [])
        try:
            return Decoded(rows.cast(self.columns), everything, [])
        except pa.ArrowInvalid:
            bad = [(at, why) for at, value in enumerate(raw.column("value")) if (why := _not_text(value))]
        wrong = pa.array([at for at, _ in bad], pa.int64())
        kept = everything.filter(pc.invert(pc.is_in(everything, wrong)))
        return Decoded(rows.take(kept).cast(self.columns), kept, bad)


def _not_text(value: pa.Scalar) -> str:
    try:
        str(value.as_py() or b"", "utf-8")
    except UnicodeDecodeError as error:
        return str(error)
    return ""


class BlockDecoder:
    """Formats that decode values in blocks."""

    def __init__(self, form: Format, metadata: tuple[str, ...]) -> None:
        self._form = form
        self._metadata = metadata

    @property
    def columns(self) -> pa.Schema:
        return self._form.schema

    @property
    def clashes(self) -> Clashes:
        return self._form.clashes

    def decode(self, raw: pa.RecordBatch) -> Decoded:
        values = raw.column("value")
        bad: list[tuple[int, str]] = []
        places = pa.array(np.arange(len(values))) if values.null_count else None
        if places is not None:
            bad += [(at, NO_VALUE) for at in places.filter(values.is_null()).to_pylist()]
            places = places.filter(values.is_valid())
            values = values.drop_null()
        pieces: list[tuple[int, int, pa.Table]] = []
        wrong: list[tuple[int, str]] = []
        self._isolate(values, 0, len(values), pieces, wrong)
        kept = _kept(pieces)
        if places is not None:
            wrong = [(places[at].as_py(), why) for at, why in wrong]
            kept = places.take(kept)
        rows = self._joined([rows for _, _, rows in pieces], raw, kept)
        return Decoded(rows, kept, sorted(bad + wrong))

    def _isolate(
        self,
        values: pa.Array,
        start: int,
        end: int,
        pieces: list[tuple[int, int, pa.Table]],
        bad: list[tuple[int, str]],
    ) -> None:
        if start == end:
            return
        try:
            pieces.append((start, end, self._form.block(values.slice(start, end - start))))
        except DecodeError as error:
            if end - start == 1:
                bad.append((start, str(error)))
                return
            middle = (start + end) // 2
            self._isolate(values, start, middle, pieces, bad)
            self._isolate(values, middle, end, pieces, bad)

    def _joined(self, pieces: list[pa.Table], raw: pa.RecordBatch, kept: pa.Array) -> pa.Table:
        form = self._form.schema
        # A piece decoded before a new column was seen gets it now, empty.
        rows = pa.concat_tables([aligned(piece, form) for piece in pieces] or [form.empty_table()])
        whole = len(kept) == raw.num_rows
        for name in self._metadata:
            column = raw.column(name)
            rows = rows.append_column(f"_{name}", column if whole else column.take(kept))
        return rows


def row_schema(columns: pa.Schema, metadata: tuple[str, ...]) -> pa.Schema:
    """What rows look like: the decoded columns, then the metadata."""
    schema = pa.schema([field.with_nullable(True) for field in columns])
    for name in metadata:
        schema = schema.append(pa.field(f"_{name}", _METADATA_TYPES[name]))
    return schema


def _kept(pieces: list[tuple[int, int, pa.Table]]) -> pa.Array:
    runs = [np.arange(start, end) for start, end, _ in pieces]
    return pa.array(np.concatenate(runs) if runs else [], pa.int64())


def make_decoder(spec: Decode, schema: pa.Schema | None, *, grow: bool) -> Decoder:
    """The decoder that a pipeline asks for.

    schema: the columns known by now, for formats that have to find them
    grow: whether columns that are not in it are taken up
    """
    if spec.value in ("raw", "utf8"):
        return RecordDecoder(text=spec.value == "utf8")
    form = _format(spec, schema, grow=grow)
    if not grow:
        check_names(form.schema, spec.metadata_names)
    return BlockDecoder(form, spec.metadata)


def _format(spec: Decode, schema: pa.Schema | None, *, grow: bool) -> Format:
    match spec.value:
        case "json":
            from ottla.spark.pipeline.decode.json_rows import Json

            return Json(schema or pa.schema([]), grow=grow, taken=spec.metadata_names)
        case "csv":
            from ottla.spark.pipeline.decode.csv_rows import Csv

            assert schema is not None
            return Csv(schema, spec.delimiter)
        case "avro" | "confluent-avro":
            from ottla.spark.pipeline.decode.avro_rows import make_avro

            return make_avro(spec, schema, grow=grow)
    raise AssertionError(spec.value)
