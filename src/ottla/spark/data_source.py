"""format("ottla"): options and schema to readers and writers, nothing else."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.errors import ConfigError
from ottla.spark.option_names import BATCH, BY_NAME, STREAM
from ottla.spark.options import CORRUPT, HEADERS, ReadOptions, read_options, write_options

TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
    CORRUPT: BinaryType(),
}


class OttlaSource(DataSource):
    """Topics, from segment files or from brokers."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        # Whether this is for read or readStream is not said here; each takes options that the other refuses, or values:
        # `latest` is for streams. What a batch does not take, its reader refuses.
        names = {option.name.lower() for option in BY_NAME.values() if option.where in (STREAM, BATCH)}
        common = {name: value for name, value in self.options.items() if name.lower() not in names}
        return StructType(
            [StructField(name, TYPES[name]) for name in read_options(common, is_stream=True).columns]
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.read.reader import BatchReader

        return BatchReader(_with_columns(read_options(self.options), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.read.stream_reader import StreamReader

        return StreamReader(_with_columns(read_options(self.options, is_stream=True), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ottla.spark.write.writer import TopicWriter

        return TopicWriter(write_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from ottla.spark.write.stream_writer import TopicStreamWriter

        return TopicStreamWriter(write_options(self.options), schema)


def _with_columns(options: ReadOptions, schema: StructType) -> ReadOptions:
    """Only the columns that the schema asks for, in its order."""
    for field in schema:
        known = TYPES.get(field.name)
        if known is None:
            raise ConfigError(f"there is no column {field.name}; there are {', '.join(TYPES)}")
        if field.dataType != known:
            raise ConfigError(
                f"column {field.name} is {known.simpleString()}, not {field.dataType.simpleString()};"
                " give the schema these types and cast afterwards"
            )
    return replace(options, columns=tuple(schema.fieldNames()))
