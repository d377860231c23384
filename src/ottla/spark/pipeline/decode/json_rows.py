"""JSON values to rows: a block of values is joined with newlines and parsed by Arrow in one call."""

from __future__ import annotations

import json
import math
import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.spark.tables.ddl import TIMESTAMP
from ottla.spark.tables.exact import check_nulls, leaves, mapped, roomy, timeless
from ottla.spark.tables.names import Clashes, without_clashes
from ottla.spark.tables.reshape import DecodeError, aligned

_SMALLEST_BLOCK_BYTES = 64
# Arrow builds the type of what it infers recursively: a value of 100,000 brackets would end the process.
_MAX_DEPTH = 200
_HUGE = "\0huge"
_SAID = re.compile(rb'("(?:[^"\\]|\\.)*")|-?Inf(?:inity)?')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Json:
    """Values that are one JSON object each. Fields that are not asked for are passed over, or taken up (grow)."""

    def __init__(self, schema: pa.Schema, *, grow: bool, taken: tuple[str, ...] = ()) -> None:
        self.schema = schema
        self.clashes: Clashes = {}
        self._grow = grow
        self._taken = taken

    def block(self, values: pa.Array) -> pa.Table:
        joined = _joined(values, check_depth=self._grow)
        try:
            if self._grow:
                seen = _read(joined, wire_schema(self.schema), len(values), grow=True)
                grown = _grown_schema(self.schema, seen.schema)
                self.schema, clashes = without_clashes(grown, self._taken)
                self.clashes |= clashes
            # Read again with what is known now: a text that looks like a time stays a text.
            return _decoded(joined, len(values), self.schema)
        except DecodeError as error:
            if len(values) > 1:
                raise  # it will be cut in pieces
            raise _named(error, joined, self.schema) from None


def _decoded(joined: pa.Buffer, count: int, schema: pa.Schema) -> pa.Table:
    loose = pa.schema([field.with_nullable(True) for field in schema])
    texts = wire_schema(schema, _TEXTS)
    try:
        rows = aligned(_read(joined, wire_schema(schema), count), loose)
    except DecodeError:
        if texts.equals(wire_schema(schema)):
            raise
        # Once more with times as texts: the parser takes no more than six digits of a second.
        rows = aligned(_read(joined, texts, count), loose)
    _check_floats(rows, joined, loose)
    if (name := timeless(rows)) is not None:
        raise DecodeError("not between the years 1 and 9999", name)
    if (name := check_nulls(rows, schema)) is not None:
        raise DecodeError("null is not allowed", name)
    return rows


def _check_floats(rows: pa.Table, joined: pa.Buffer, schema: pa.Schema) -> None:
    """The parser makes a number that is too large for its type infinite; only one that says Infinity may be."""
    if not _infinite(rows):
        return
    unsaid = _SAID.sub(lambda found: found[1] or b"null", joined.to_pybytes())
    if _infinite(_read(pa.py_buffer(unsaid), wire_schema(schema, _TEXTS), rows.num_rows)):
        raise DecodeError("a number is too large for its type")


def _infinite(rows: pa.Table) -> bool:
    return any(
        pc.any(pc.is_inf(leaf)).as_py()
        for name, column in zip(rows.column_names, rows.columns, strict=True)
        for chunk in column.chunks
        for _, leaf in leaves(chunk, name)
        if pa.types.is_floating(leaf.type)
    )


def _named(error: DecodeError, joined: pa.Buffer, schema: pa.Schema) -> DecodeError:
    """What is wrong with one value, with the name of the column that does not fit."""
    try:
        _read(joined, pa.schema([]), 1, grow=False)
    except DecodeError as found:
        return DecodeError(str(found), _too_big(joined))  # no JSON, whatever the columns
    for field in schema:
        try:
            _decoded(joined, 1, pa.schema([field]))
        except DecodeError as found:
            return found if found.column else DecodeError(str(found), field.name)
    return error


def _too_big(joined: pa.Buffer) -> str | None:
    """The field with a number that no double can hold: the parser does not even pass over it."""

    def looked_at(digits: str) -> str:
        return _HUGE if math.isinf(float(digits)) else ""

    try:
        value = json.loads(joined.to_pybytes(), parse_float=looked_at, parse_int=looked_at)
    except (ValueError, RecursionError):
        return None
    return next((name for name in value if json.dumps(_HUGE) in json.dumps(value[name])), None)


def infer(values: pa.Array) -> pa.Schema:
    """The schema of a sample; values that are no JSON are passed over."""
    form = Json(pa.schema([]), grow=True)

    def look(start: int, end: int) -> None:
        try:
            form.block(values.slice(start, end - start))
        except DecodeError:
            if end - start > 1:
                look(start, (start + end) // 2)
                look((start + end) // 2, end)

    if len(values):
        look(0, len(values))
    return form.schema


def _joined(values: pa.Array, *, check_depth: bool) -> pa.Buffer:
    try:
        texts = values.cast(pa.large_string())  # checks that all of it is UTF-8, which the parser does not
    except pa.ArrowInvalid:
        raise DecodeError("the value is not UTF-8") from None
    # What makes "as many rows as values" mean "one row for each value": an object cannot end in a value after its
    # own, because what comes between would be a newline and `{`, which no unfinished object goes on with.
    if not (_all_objects(texts) or _all_objects(pc.utf8_trim_whitespace(texts))):
        raise DecodeError("the value is not a JSON object")
    if check_depth:
        brackets = pc.count_substring_regex(texts, r"[\[{]")
        for text in texts.filter(pc.greater(brackets, _MAX_DEPTH)).to_pylist():
            if _depth(text) > _MAX_DEPTH:
                raise DecodeError(f"the value is nested more than {_MAX_DEPTH} deep")
    lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return pc.binary_join(lines, pa.scalar("\n", pa.large_string()))[0].as_buffer()


def _all_objects(texts: pa.Array) -> bool:
    both = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    return bool(pc.all(both).as_py())


def _depth(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _read(joined: pa.Buffer, schema: pa.Schema, count: int, *, grow: bool = False) -> pa.Table:
    try:
        rows = pj.read_json(
            pa.BufferReader(joined),
            pj.ReadOptions(use_threads=False, block_size=max(joined.size + 1, _SMALLEST_BLOCK_BYTES)),
            pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=True,
                unexpected_field_behavior="infer" if grow else "ignore",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DecodeError(_reason(error)) from None
    if rows.num_rows != count:
        raise DecodeError("more than one JSON object in a value" if count == 1 else "rows do not match")
    return rows


# How types are asked for, where the parser cannot give them as they are wanted.
_DATES = {pa.date32(): pa.string()}  # it reads dates only as numbers of days
_TEXTS = _DATES | {TIMESTAMP: pa.string(), pa.timestamp("us"): pa.string()}


def wire_schema(schema: pa.Schema, instead: dict[pa.DataType, pa.DataType] = _DATES) -> pa.Schema:
    """What to ask the parser for."""

    def wire(kind: pa.DataType) -> pa.DataType:
        return instead.get(kind, roomy(kind))

    return pa.schema([pa.field(field.name, mapped(field.type, wire)) for field in schema])


def _grown_schema(known: pa.Schema, seen: pa.Schema) -> pa.Schema:
    """A schema with the columns that were seen beside it, as types that last."""
    fields = []
    for name in dict.fromkeys([*known.names, *seen.names]):
        at = known.get_field_index(name)
        if at < 0:
            kind = _lasting(seen.field(name).type)
            fields += [pa.field(name, kind)] if kind is not None else []
        else:
            fields.append(known.field(at).with_type(_grown(known.field(at).type, seen.field(name).type)))
    return pa.schema(fields)


def _grown(known: pa.DataType, seen: pa.DataType) -> pa.DataType:
    if pa.types.is_list(known) and pa.types.is_list(seen):
        return pa.list_(pa.field("element", _grown(known.value_type, seen.value_type)))
    if pa.types.is_struct(known) and pa.types.is_struct(seen):
        return pa.struct(list(_grown_schema(pa.schema(list(known)), pa.schema(list(seen)))))
    return known


def _lasting(kind: pa.DataType) -> pa.DataType | None:
    """An inferred type as one that lasts: no times guessed from texts, nothing of which only null was seen."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        item = _lasting(kind.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    if pa.types.is_struct(kind):
        fields = [(field, found) for field in kind if (found := _lasting(field.type)) is not None]
        return pa.struct([field.with_type(found) for field, found in fields]) if fields else None
    return kind


def _reason(error: Exception) -> str:
    """The parser's words, without its count of rows, which starts at this block."""
    return str(error).removesuffix(" in row 0").replace("JSON parse error: ", "")
