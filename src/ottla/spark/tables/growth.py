"""How a table's columns take up what new rows have more: columns, and fields inside of structs, lists and maps."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def union(known: pa.DataType, seen: pa.DataType) -> pa.DataType:
    """A column's type with the fields that it has not and rows have; what it has keeps its type and place."""
    if pa.types.is_struct(known) and pa.types.is_struct(seen):
        fields = [
            field.with_type(union(field.type, seen.field(at).type))
            if (at := seen.get_field_index(field.name)) >= 0
            else field
            for field in known
        ]
        fields += [field.with_nullable(True) for field in seen if known.get_field_index(field.name) < 0]
        return pa.struct(fields)
    if pa.types.is_list(known) and pa.types.is_list(seen):
        return pa.list_(known.value_field.with_type(union(known.value_type, seen.value_type)))
    if pa.types.is_map(known) and pa.types.is_map(seen):
        return pa.map_(known.key_type, known.item_field.with_type(union(known.item_type, seen.item_type)))
    return known


def additions(name: str, known: pa.DataType, grown: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The fields that a union added, with all names on the way to them."""
    if pa.types.is_struct(known):
        for field in grown:
            at = known.get_field_index(field.name)
            if at < 0:
                yield f"{name}.{field.name}", field.type
            else:
                yield from additions(f"{name}.{field.name}", known.field(at).type, field.type)
    elif pa.types.is_list(known):
        yield from additions(f"{name}.element", known.value_type, grown.value_type)
    elif pa.types.is_map(known):
        yield from additions(f"{name}.value", known.item_type, grown.item_type)
