"""JSON values to rows: a block of values is joined with newlines and parsed by Arrow in one call."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.spark.pipeline.decode import DecodeError, aligned

_SMALLEST_BLOCK_BYTES = 64
# Arrow builds the type of what it infers recursively: a value of 100,000 brackets would end the process.
_MAX_DEPTH = 200
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Json:
    """Values that are one JSON object each. Fields that are not asked for are passed over, or taken up (grow)."""

    def __init__(self, schema: pa.Schema, *, grow: bool) -> None:
        self.schema = schema
        self._grow = grow

    def block(self, values: pa.Array) -> pa.Table:
        joined = _joined(values, check_depth=self._grow)
        if self._grow:
            seen, _ = _parse(joined, len(values), self.schema, grow=True)
            self.schema = _grown_schema(self.schema, seen.schema)
        # Read again with what is known now: a text that looks like a time stays a text.
        rows, schema = _parse(joined, len(values), self.schema, grow=False)
        try:
            rows = aligned(rows, schema)
        except pa.ArrowInvalid as error:
            raise DecodeError(str(error)) from None
        _check_nulls(rows, self.schema)
        return rows


def _parse(joined: pa.Buffer, count: int, schema: pa.Schema, *, grow: bool) -> tuple[pa.Table, pa.Schema]:
    """What the parser makes of it, and the schema that the rows shall have."""
    loose = pa.schema([field.with_nullable(True) for field in schema])
    try:
        rows = _read(joined, wire_schema(schema), grow=grow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        rows = _with_nanoseconds(joined, schema, grow=grow)
        if rows is None:
            raise DecodeError(_reason(error)) from None
    if rows.num_rows != count:
        raise DecodeError("more than one JSON object in a value" if count == 1 else "rows do not match")
    return rows, loose


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


def _read(joined: pa.Buffer, schema: pa.Schema, *, grow: bool) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(joined),
        pj.ReadOptions(use_threads=False, block_size=max(joined.size + 1, _SMALLEST_BLOCK_BYTES)),
        pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=True,
            unexpected_field_behavior="infer" if grow else "ignore",
        ),
    )


def _with_nanoseconds(joined: pa.Buffer, schema: pa.Schema, *, grow: bool) -> pa.Table | None:
    """Once more for times with more than six digits of a second, which are cut off."""
    finer = pa.schema([_finer(field) for field in wire_schema(schema)])
    if finer.equals(wire_schema(schema)):
        return None
    try:
        rows = _read(joined, finer, grow=grow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    for index, field in enumerate(schema):
        at = rows.schema.get_field_index(field.name)
        if finer.field(index).type != field.type and pa.types.is_timestamp(field.type):
            rows = rows.set_column(at, field, rows.column(at).cast(field.type, safe=False))
    return rows


def _finer(field: pa.Field) -> pa.Field:
    if pa.types.is_timestamp(field.type):
        return field.with_type(pa.timestamp("ns", field.type.tz))
    return field


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """What to ask the parser for: it reads dates only as numbers of days, so they come as texts first."""
    return pa.schema([field.with_type(_wire_type(field.type)).with_nullable(True) for field in schema])


def _wire_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _wire_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _wire_type(field.type)) for field in kind])
    return kind


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


def _check_nulls(rows: pa.Table, schema: pa.Schema) -> None:
    for field in schema:
        if not field.nullable and rows.column(field.name).null_count:
            raise DecodeError(f"{field.name} is null")


def _reason(error: Exception) -> str:
    """The parser's words, without its count of rows, which starts at this block."""
    return str(error).removesuffix(" in row 0").replace("JSON parse error: ", "")
