"""From one type to another so that no value becomes a different one: it stays equal, or ArrowInvalid says why not.

Arrow's safe casts check most of this. They let pass a number that becomes infinite, a time that loses its hours, and
a float that a decimal rounds; and its parsers check a decimal's digits before they scale it.

A float holds the nearest number that it can: that is what floats are. Digits of a time behind the microseconds are
cut off, before 1970 too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.tables.ddl import TIMESTAMP, type_name

MAX_DIGITS = 38
_DAY, _DAY_US = 1, 86_400_000_000
_FIRST_DAY = (date.min - date(1970, 1, 1)).days
_END_DAY = (date.max - date(1970, 1, 1)).days + 1


def roomy(kind: pa.DataType) -> pa.DataType:
    """What to ask a parser for in place of a decimal: 38 digits still fit when they are scaled by 38 more."""
    return pa.decimal256(MAX_DIGITS, kind.scale) if pa.types.is_decimal(kind) else kind


def exact_cast(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """A column as another type that is not nested; ArrowInvalid where a value does not fit."""
    if pa.types.is_timestamp(kind) and pa.types.is_string(column.type):
        return times(column, kind)
    if pa.types.is_decimal(kind) and pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column).cast(roomy(kind))
    found = column.cast(kind)
    lost = None
    if pa.types.is_floating(kind) and pa.types.is_floating(column.type):
        lost = pc.and_(pc.is_inf(found), pc.is_finite(column))
    elif _is_lossy(column.type, kind):
        lost = pc.not_equal(found.cast(column.type), column)
    if lost is not None and pc.any(lost).as_py():
        example = column.filter(lost)[0].as_py()
        raise pa.ArrowInvalid(f"{example} does not fit into {type_name(kind)}")
    return found


def _is_lossy(given: pa.DataType, kind: pa.DataType) -> bool:
    is_rounded = pa.types.is_floating(given) and pa.types.is_decimal(kind)
    return bool(is_rounded or (pa.types.is_timestamp(given) and pa.types.is_date(kind)))


def times(texts: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Times with a zone or without one (which means UTC); digits behind the sixth of a second are cut off."""
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(texts, r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
    nothing = pa.scalar(None, pa.string())
    here = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    there = pc.if_else(zoned, texts, nothing).cast(TIMESTAMP)
    return pc.coalesce(pc.assume_timezone(here, "UTC"), there).cast(kind)


def leaves(column: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """The values inside of structs and lists, however deep, each with the names on the way to it."""
    if pa.types.is_struct(column.type):
        for field, child in zip(column.type, column.flatten(), strict=True):
            yield from leaves(child, f"{path}.{field.name}")
    elif pa.types.is_list(column.type):
        yield from leaves(column.flatten(), path)
    else:
        yield path, column


def timeless(rows: pa.Table) -> str | None:
    """The first column with a day or time that Spark and Python have not: before the year 1, or after 9999."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        for chunk in column.chunks if _may_hold_times(column.type) else ():
            for path, leaf in leaves(chunk, name):
                unit = _DAY if pa.types.is_date(leaf.type) else _DAY_US
                if not _may_hold_times(leaf.type) or leaf.null_count == len(leaf):
                    continue
                ends = pc.min_max(leaf.view(pa.int32() if unit == _DAY else pa.int64()))
                if ends["min"].as_py() < _FIRST_DAY * unit or ends["max"].as_py() >= _END_DAY * unit:
                    return path
    return None


def _may_hold_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) or pa.types.is_nested(kind))


def mapped(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with every type inside of its structs and lists changed, and all of them nullable."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", mapped(kind.value_type, change)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, mapped(field.type, change)) for field in kind])
    return change(kind)


def missing(column: pa.Array, kind: pa.DataType, path: str) -> str | None:
    """The first field inside of a column that is null and must not be."""
    if pa.types.is_struct(kind):
        for field, child in zip(kind, column.flatten(), strict=True):
            inner = f"{path}.{field.name}"
            # A struct that is null has no fields that could be missing.
            if not field.nullable and child.null_count > column.null_count:
                return inner
            if found := missing(child, field.type, inner):
                return found
    elif pa.types.is_list(kind):
        return missing(column.flatten(), kind.value_type, path)
    return None


def check_nulls(rows: pa.Table, schema: pa.Schema) -> str | None:
    """The first field that is null and must not be, or None."""
    for field in schema:
        column = rows.column(field.name)
        if not field.nullable and column.null_count:
            return str(field.name)
        if pa.types.is_nested(field.type):
            for chunk in column.chunks:
                if found := missing(chunk, field.type, field.name):
                    return found
    return None
