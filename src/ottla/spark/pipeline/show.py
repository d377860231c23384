"""A pipeline's tables as views of Spark SQL, without a jar: Spark reads the files that the table names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import PipelineError
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.targets.choice import quarantine_sink, table_sink
from ottla.spark.sinks.base import TableSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "rows"
QUARANTINE = "quarantine"


def register(pipeline: Pipeline, session: SparkSession) -> None:
    """The views `rows` and `quarantine`, as the tables are now."""
    if not _register(session, table_sink(pipeline), ROWS):
        raise PipelineError(f"{pipeline.sink.path}: there is no table yet; run the pipeline first")
    _register(session, quarantine_sink(pipeline), QUARANTINE)


def _register(session: SparkSession, sink: TableSink, name: str) -> bool:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = sink.schema()
    if schema is None:
        return False
    files = sink.active_files()
    if not files:
        session.createDataFrame([], from_arrow_schema(schema)).createOrReplaceTempView(name)
        return True
    layout = sink.layout("show", 0)
    reader = session.read.schema(from_arrow_schema(schema))
    if layout.partition_by and not layout.keeps_partition_columns:
        reader = reader.option("basePath", sink.path)  # the directories' names are columns
    reader.parquet(*files).createOrReplaceTempView(name)
    return True
