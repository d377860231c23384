"""CSV values to rows: one line each, without a header, joined and parsed by Arrow in one call."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from ottla.spark.pipeline.ddl import TIMESTAMP
from ottla.spark.pipeline.decode import DecodeError

_SMALLEST_BLOCK_BYTES = 64


class Csv:
    """Values that are one CSV line each; a field with nothing in it is null, unless it stands in quotes."""

    def __init__(self, schema: pa.Schema, delimiter: str) -> None:
        self.schema = schema
        names = schema.names
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            raise DecodeError(f"{nested[0]}: a csv field is no array, struct or map")
        self._parsing = pv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False
        )
        self._converting = pv.ConvertOptions(
            column_types={field.name: _wire_type(field.type) for field in schema},
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE", "1"],
            false_values=["false", "False", "FALSE", "0"],
        )

    def block(self, values: pa.Array) -> pa.Table:
        texts = self._texts(values)
        lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
        joined = pc.binary_join(lines, pa.scalar("\n", pa.large_string()))[0].as_buffer()
        reading = pv.ReadOptions(
            use_threads=False,
            block_size=max(joined.size + 1, _SMALLEST_BLOCK_BYTES),
            column_names=self.schema.names,
        )
        try:
            rows = pv.read_csv(pa.BufferReader(joined), reading, self._parsing, self._converting)
        except pa.ArrowInvalid as error:
            raise DecodeError(str(error).removeprefix("CSV parse error: ")) from None
        if rows.num_rows != len(values):
            raise DecodeError("a quote is not closed" if len(values) == 1 else "rows do not match")
        for field in self.schema:
            if not field.nullable and rows.column(field.name).null_count:
                raise DecodeError(f"{field.name} is null")
        try:
            columns = [_from_wire(rows.column(field.name), field.type) for field in self.schema]
        except pa.ArrowInvalid as error:
            raise DecodeError(str(error)) from None
        return pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in self.schema]))

    def _texts(self, values: pa.Array) -> pa.Array:
        try:
            texts = values.cast(pa.large_string())
        except pa.ArrowInvalid:
            raise DecodeError("the value is not UTF-8") from None
        # A line break makes two rows of a value and an open quote one row of two values: only where there are no
        # breaks does the right number of rows mean that each value has its own.
        if len(values) > 1 and pc.any(pc.match_substring_regex(texts, r"[\r\n]")).as_py():
            raise DecodeError("a value has line breaks")
        if pc.min(pc.binary_length(texts)).as_py() == 0:
            raise DecodeError("the value is empty")
        return texts


def _wire_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _from_wire(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Times with a zone or without one (which means UTC); digits behind the sixth of a second are cut off."""
    if not pa.types.is_timestamp(kind):
        return column
    texts = pc.replace_substring_regex(column, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(texts, r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
    nothing = pa.scalar(None, pa.string())
    here = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    there = pc.if_else(zoned, texts, nothing).cast(TIMESTAMP)
    return pc.coalesce(pc.assume_timezone(here, "UTC"), there).cast(kind)
