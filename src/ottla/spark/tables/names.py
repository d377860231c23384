"""Names that differ only in case. JSON and Avro tell them apart; tables do not: Spark cannot read one that has both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ottla.errors import ConfigError

Clashes = dict[str, str]  # what is left out: what is kept instead


def without_clashes(schema: pa.Schema, taken: Iterable[str] = ()) -> tuple[pa.Schema, Clashes]:
    """A schema with only the first of such names, at every depth; and what it has not any more.

    taken: names of columns that come from elsewhere
    """
    clashes: Clashes = {}
    return pa.schema(_kept(list(schema), "", clashes, taken)), clashes


def _kept(
    fields: Sequence[pa.Field], path: str, clashes: Clashes, taken: Iterable[str] = ()
) -> list[pa.Field]:
    first = {name.lower(): name for name in taken}
    kept = []
    for field in fields:
        name = first.setdefault(field.name.lower(), field.name)
        if name == field.name and name not in taken:
            kept.append(field.with_type(_kept_inside(field.type, f"{path}{name}.", clashes)))
        else:
            clashes[path + field.name] = path + name
    return kept


def _kept_inside(kind: pa.DataType, path: str, clashes: Clashes) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_kept(list(kind), path, clashes))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_kept_inside(kind.value_type, path, clashes)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_kept_inside(kind.item_type, path, clashes)))
    return kind


def told(clashes: Clashes) -> str:
    """What is wrong, in words."""
    left_out, kept = next(iter(clashes.items()))
    more = f" (and {len(clashes) - 1} more like these)" if len(clashes) > 1 else ""
    if left_out == kept:
        return f"the name {kept} is that of a column with the record's metadata{more}"
    return f"the names {kept} and {left_out} differ only in case, and a table cannot have both{more}"


def check_names(schema: pa.Schema, taken: Iterable[str] = ()) -> None:
    """An error where a schema that was given has such names."""
    clashes = without_clashes(schema, taken)[1]
    if clashes:
        raise ConfigError(f"{told(clashes)}; rename one of them")
