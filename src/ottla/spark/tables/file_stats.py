"""What Delta's log says of a file's contents (rows, nulls, least and greatest values), from Parquet's own footer."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import pyarrow.parquet as pq

_MAX_COLUMNS = 32  # as Delta's own writers
_MAX_TEXT = 32


def file_stats(metadata: pq.FileMetaData) -> dict[str, Any]:
    stats: dict[str, Any] = {
        "numRecords": metadata.num_rows,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    for index in range(min(metadata.num_columns, _MAX_COLUMNS)):
        name = metadata.schema.column(index).path
        if "." in name:
            continue  # a column inside of another
        found = [
            metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)
        ]
        if not found or any(one is None or not one.has_null_count for one in found):
            continue
        stats["nullCount"][name] = sum(one.null_count for one in found)
        ranges = [(one.min, one.max) for one in found if one.has_min_max]
        if ranges and len(ranges) == sum(one.num_values > 0 for one in found):
            least, greatest = _text(min(low for low, _ in ranges)), _text(max(high for _, high in ranges))
            if least is not None and greatest is not None:
                stats["minValues"][name], stats["maxValues"][name] = least, greatest
    return stats


def _text(value: Any) -> Any:
    """A value as JSON has it, or None where a bound would say too much or too little."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str) and len(value) <= _MAX_TEXT:
        return value
    if isinstance(value, datetime):
        # Readers take milliseconds here: a bound must not be cut to below the value.
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if value.tzinfo else text
    if isinstance(value, date):
        return value.isoformat()
    return None
