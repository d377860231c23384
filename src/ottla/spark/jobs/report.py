"""What a job found or did as a Parquet file, a row for each thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.storage import layout

_TYPES = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}


def write_report(path: str, columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows; a column that a row does not have is null there."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), path)


def where(file: str) -> dict[str, Any]:
    """Topic and partition by the path of a file (or of a partition's directory); nothing for other files."""
    for name in reversed(file.split("/")):
        marked = layout.parse_marked_dir(name)
        known = marked[0] if marked else layout.parse_partition_dir(name)
        if known is not None:
            return {"topic": known.topic, "partition": known.partition}
    return {}
