"""Rows that were put aside: where each came from, what is wrong with it, and its bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ottla.spark.tables.ddl import TIMESTAMP

QUARANTINE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("error", pa.string()),
        ("bytes", pa.binary()),
    ]
)


def quarantined(raw: pa.RecordBatch, bad: Sequence[tuple[int, str]]) -> pa.Table:
    """The bad ones of a batch as rows of the quarantine table."""
    places = pa.array([at for at, _ in bad], pa.int64())
    columns = {
        "error": pa.array([why for _, why in bad], pa.string()),
        "bytes": raw.column("value").take(places),
    }
    for name in ("topic", "partition", "offset", "timestamp"):
        columns[name] = raw.column(name).take(places)
    return pa.table([columns[name] for name in QUARANTINE_SCHEMA.names], schema=QUARANTINE_SCHEMA)
