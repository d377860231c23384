"""CSV values to rows: one line each, without a header, joined and parsed by Arrow in one call."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from ottla.spark.tables.ddl import type_name
from ottla.spark.tables.exact import MAX_DIGITS, check_nulls, timeless
from ottla.spark.tables.names import Clashes
from ottla.spark.tables.reshape import DecodeError, reshaped

_SMALLEST_BLOCK_BYTES = 64
_DIGITS = r"^-?[0-9]+$"
_INFINITE = r"^(?i)[+-]?inf(inity)?$"


class Csv:
    """Values that are one CSV line each; a field with nothing in it is null, unless it stands in quotes."""

    def __init__(self, schema: pa.Schema, delimiter: str) -> None:
        self.schema = schema
        self.clashes: Clashes = {}
        names = schema.names
        self._has_integers = any(pa.types.is_integer(field.type) for field in schema)
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
            raise self._told(error) from None
        if rows.num_rows != len(values):
            raise DecodeError("a quote is not closed" if len(values) == 1 else "rows do not match")
        if (name := check_nulls(rows, self.schema)) is not None:
            raise DecodeError("null is not allowed", name)
        self._check_numbers(joined, rows, reading)
        columns = []
        for field in self.schema:
            try:
                column = reshaped(rows.column(field.name), field.type)
                if pa.types.is_decimal(field.type):
                    column.validate(full=True)  # the digits that it has now
                columns.append(column)
            except pa.ArrowInvalid as error:
                raise DecodeError(str(error), field.name) from None
        found = pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in self.schema]))
        if (name := timeless(found)) is not None:
            raise DecodeError("not between the years 1 and 9999", name)
        return found

    def _check_numbers(self, joined: pa.Buffer, rows: pa.Table, reading: pv.ReadOptions) -> None:
        """The parser takes 0xFF for a number, -1 in a byte, and makes one that is too large infinite."""
        text = joined.to_pybytes() if self._has_integers else b""
        # To look for one letter is ten times as quick as for two.
        is_hex = (b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)
        suspects = {
            field.name: _INFINITE if pa.types.is_floating(field.type) else _DIGITS
            for field in self.schema
            if (is_hex and pa.types.is_integer(field.type))
            or (pa.types.is_floating(field.type) and pc.any(pc.is_inf(rows.column(field.name))).as_py())
        }
        if not suspects:
            return
        converting = pv.ConvertOptions(
            column_types=dict.fromkeys(self.schema.names, pa.string()), include_columns=list(suspects)
        )
        texts = pv.read_csv(pa.BufferReader(joined), reading, self._parsing, converting)
        for name, pattern in suspects.items():
            column, kind = rows.column(name), self.schema.field(name).type
            doubtful = pc.is_inf(column) if pattern is _INFINITE else column.is_valid()
            fits = pc.match_substring_regex(pc.utf8_trim_whitespace(texts.column(name)), pattern)
            if pc.any(pc.and_(doubtful, pc.invert(fits))).as_py():
                raise DecodeError(f"not a number, or too large for {type_name(kind)}", name)

    def _told(self, error: Exception) -> DecodeError:
        """The parser's words, with the column's name in place of its number, and without a count of rows."""
        found = re.fullmatch(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", str(error), re.DOTALL)
        if found is None:
            return DecodeError(str(error).removeprefix("CSV parse error: "))
        return DecodeError(found[2], self.schema.names[int(found[1])])

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
    """What the parser does not read, or reads wrong, comes as a text first."""
    # Arrow counts a decimal's digits before it scales it; a number without room for both would wrap round.
    wraps = pa.types.is_decimal(kind) and kind.precision + kind.scale > MAX_DIGITS
    return pa.string() if pa.types.is_timestamp(kind) or wraps else kind
