"""Avro's types as Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.errors import ConfigError
from ottla.spark.pipeline.decode.avro_logical import logical_type
from ottla.spark.tables.ddl import TIMESTAMP
from ottla.spark.tables.exact import MAX_DIGITS

_PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "timestamp-nanos": TIMESTAMP,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
    "time-millis": pa.string(),
    "time-micros": pa.string(),
}


def arrow_schema(schema: Any) -> pa.Schema:
    """A record's fields as columns; any other schema as one column `value`."""
    named: dict[str, pa.DataType] = {}
    kind = _type(schema, named)
    if pa.types.is_struct(kind):
        return pa.schema([field.with_nullable(True) for field in kind])
    return pa.schema([("value", kind)])


def _type(schema: Any, named: dict[str, pa.DataType]) -> pa.DataType:
    if isinstance(schema, str):
        return named[schema] if schema in named else _PRIMITIVES[schema]
    if isinstance(schema, list):
        return _union([_type(branch, named) for branch in schema if branch != "null"])
    if (logical := logical_type(schema)) == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > MAX_DIGITS:
            raise ConfigError(f"decimal({precision}, {scale}): tables hold up to {MAX_DIGITS} digits")
        return pa.decimal128(precision, scale)
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match schema["type"]:
        case "record" | "error":
            # A record that holds itself has no Arrow type: its inner one stays a text.
            named[schema["name"]] = pa.string()
            fields = [pa.field(one["name"], _type(one["type"], named)) for one in schema["fields"]]
            kind: pa.DataType = pa.struct(fields)
        case "array":
            return pa.list_(pa.field("element", _type(schema["items"], named)))
        case "map":
            return pa.map_(pa.string(), _type(schema["values"], named))
        case other:
            kind = _type(other, named)
    if "name" in schema:
        named[schema["name"]] = kind
    return kind


def _union(branches: list[pa.DataType]) -> pa.DataType:
    """One branch beside null is that type; numbers widen; anything else is told as text."""
    if not branches:
        return pa.null()
    try:
        columns = [pa.schema([("union", branch)]) for branch in branches]
        kind = pa.unify_schemas(columns, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.string()
    return pa.string() if pa.types.is_decimal256(kind) else kind


def converted(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow takes it for a type: only texts for what has none of its own need work."""
    if value is None or not (pa.types.is_string(kind) or pa.types.is_nested(kind)):
        return value
    if pa.types.is_string(kind):
        if isinstance(value, bytes):
            return value.decode()  # a text made of bytes is their own, or none
        return value if isinstance(value, str) else str(value)
    if pa.types.is_list(kind):
        return [converted(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(key, converted(one, kind.item_type)) for key, one in value.items()]
    return {field.name: converted(value.get(field.name), field.type) for field in kind}
