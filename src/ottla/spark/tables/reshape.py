"""Tables made to fit a schema, every value equal: for what was decoded, and for what a table already holds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.tables.exact import exact_cast


class DecodeError(ValueError):
    """Values that do not decode or fit; of one alone, why, and in which column if it is one's fault."""

    def __init__(self, why: str, column: str | None = None) -> None:
        super().__init__(f"{column}: {why}" if column else why)
        self.column = column


def aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with exactly a schema's columns, in its order; what it lacks is null, what does not fit DecodeError."""
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        index = table.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(table.num_rows, field.type))
        elif table.schema.field(index).type == field.type:
            columns.append(table.column(index))
        else:
            try:
                columns.append(reshaped(table.column(index), field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise DecodeError(str(error), field.name) from None
    return pa.table(columns, schema=schema)


def reshaped(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """A column as another type, every value equal; structs get the fields that they lack as null."""
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([reshaped(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        children = [
            reshaped(pc.struct_field(column, [at]), field.type)
            if (at := column.type.get_field_index(field.name)) >= 0
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(column.type):
        items = reshaped(column.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        ends = pc.cumulative_sum(lengths.cast(pa.int32()))
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=column.is_null())
    return exact_cast(column, kind)
