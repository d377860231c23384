"""What stands in a pipeline's table, as its readers see it: through the table's own library, or the files it names."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from ottla.spark.sinks.base import TableSink
from ottla.spark.sinks.delta import DeltaSink
from ottla.spark.sinks.iceberg import IcebergSink
from ottla.spark.sinks.parquet import ParquetSink
from ottla.spark.tables.reshape import aligned


def table_rows(sink: TableSink) -> pa.Table | None:
    """All rows, or None where there is no table yet."""
    schema = sink.schema()
    if schema is None:
        return None
    if isinstance(sink, DeltaSink):
        delta = sink._table()
        assert delta is not None
        return delta.to_pyarrow_table()
    if isinstance(sink, IcebergSink):
        iceberg = sink._table()
        assert iceberg is not None
        return iceberg.scan().to_arrow()
    assert isinstance(sink, ParquetSink)
    sink.last("nobody")  # finishes a commit that was interrupted
    return _parquet_rows(sink, schema)


def _parquet_rows(sink: ParquetSink, schema: pa.Schema) -> pa.Table:
    by = sink.layout("nobody", 0).partition_by
    # Arrow makes no decimals of directory names.
    texts = pa.schema(
        [
            field.with_type(pa.string()) if field.name in by and pa.types.is_decimal(field.type) else field
            for field in schema
        ]
    )
    folders = ds.partitioning(pa.schema([texts.field(name) for name in by]), flavor="hive")
    files = ds.dataset(
        sink.active_files(), texts, "parquet", partitioning=folders, partition_base_dir=sink.path
    )
    return aligned(files.to_table(), schema)
