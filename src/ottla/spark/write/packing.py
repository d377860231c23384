"""Rows of Arrow batches into batches of records: topic, partition, bytes. No Python object per row.

Columns are those of Spark's Kafka connector: value, and if they are there key, headers, partition and topic; others are
left alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.cluster import PartitionKey
from ottla.errors import ConfigError
from ottla.records.batch import HEADER_SIZE
from ottla.records.columnar.pack_kernel import Packer, group_rows, partition_rows

if TYPE_CHECKING:
    from ottla.records.columnar.pack_kernel import Column, Headers

HEADERS_TYPE = "array<struct<key: string, value: binary>>"
_STICKY_BYTES = 16_384  # how much without a key goes to one partition before the next has its turn
_TEXT = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


class OpenBatch:
    """Records that have no header yet."""

    __slots__ = ("base_time", "count", "data", "latest_time")

    def __init__(self, base_time: int = 0) -> None:
        self.data = bytearray(HEADER_SIZE)
        self.count = 0
        self.base_time = base_time  # of records that have times of their own
        self.latest_time: int | None = None


class RowPacker:
    """Sorts the rows of Arrow batches into batches by partition."""

    def __init__(self, batch_bytes: int, sticky: int = 0) -> None:
        self._batch_bytes = batch_bytes
        self._sticky = sticky
        self._open: dict[PartitionKey, OpenBatch] = {}
        self.rows = 0

    @property
    def open_bytes(self) -> int:
        """How much waits for its batch to be full."""
        return sum(len(batch.data) for batch in self._open.values())

    def add(
        self, topic: str, partitions: int, rows: pa.RecordBatch, times: memoryview | None = None
    ) -> Iterator[tuple[PartitionKey, OpenBatch]]:
        """Take rows of one topic; gives the batches that have become full, in the order of their records.

        `times` are timestamps (int64); without them records have that of their batch.
        """
        keys, values, headers = _columns(rows)
        numbers = _given_partitions(rows, topic, partitions)
        self._sticky %= partitions
        self._sticky = partition_rows(keys, values[1], partitions, self._sticky, _STICKY_BYTES, numbers)
        self._sticky += 1
        order = array("i", bytes(4 * len(numbers)))
        ends = array("i", bytes(4 * partitions))
        group_rows(numbers, order, ends)
        packer = Packer(keys, values, headers, times)
        begin = 0
        for index, end in enumerate(ends):
            key = topic, index
            while begin < end:
                batch = self._open.get(key)
                if batch is None:
                    batch = self._open[key] = OpenBatch(times[order[begin]] if times is not None else 0)
                stop = packer.pack(
                    batch.data, batch.count, order, begin, end, self._batch_bytes, batch.base_time
                )
                if times is not None:
                    latest = packer.latest_time(order, begin, stop)
                    known = batch.latest_time
                    batch.latest_time = latest if known is None else max(latest, known)
                batch.count += stop - begin
                begin = stop
                if begin < end:
                    yield key, self._open.pop(key)
        self.rows += len(numbers)

    def rest(self) -> dict[PartitionKey, OpenBatch]:
        """The batches that are not full."""
        found, self._open = self._open, {}
        return found


def by_topic(rows: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows with the topic they go to: the one that was given, or what the column says."""
    if topic is not None:
        yield topic, rows
        return
    column = rows.column("topic")
    if column.null_count:
        raise ConfigError("the column topic is null in some rows: the option topic gives all rows one topic")
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], rows
        return
    for code, name in enumerate(names):
        yield name, rows.filter(pc.equal(encoded.indices, code))


def check_columns(schema: pa.Schema, topic: str | None) -> None:
    """The errors of Spark's connector, before a row is written."""
    names = schema.names
    if topic is None and "topic" not in names:
        raise ConfigError("rows need a topic: give the option topic, or a column topic")
    if "value" not in names:
        raise ConfigError("the column value is missing: it is what is written")
    for name in ("key", "value"):
        if name in names and not (
            _is_text(schema.field(name).type) or pa.types.is_null(schema.field(name).type)
        ):
            raise ConfigError(f"the column {name} is {schema.field(name).type}: cast it to string or binary")
    if topic is None and not _is_text(schema.field("topic").type, text_only=True):
        raise ConfigError(f"the column topic is {schema.field('topic').type}, not a string")
    if "partition" in names and not pa.types.is_int32(schema.field("partition").type):
        raise ConfigError(f"the column partition is {schema.field('partition').type}: cast it to int")
    if "headers" in names and not _is_headers(schema.field("headers").type):
        raise ConfigError(f"the column headers is {schema.field('headers').type}, not {HEADERS_TYPE}")


def _is_text(kind: pa.DataType, *, text_only: bool = False) -> bool:
    return any(check(kind) for check in (_TEXT[::2] if text_only else _TEXT))


def _is_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(
        kind.value_type
    ):
        return False
    fields = list(kind.value_type)
    return [field.name for field in fields] == ["key", "value"] and all(
        _is_text(field.type) for field in fields
    )


def _columns(rows: pa.RecordBatch) -> tuple[Column, Column, Headers | None]:
    names = rows.schema.names
    values = _bytes_column(rows.column("value"))
    if "key" in names:
        keys = _bytes_column(rows.column("key"))
    else:
        keys = (bytes(rows.num_rows // 8 + 1), memoryview(bytes(4 * rows.num_rows + 4)).cast("i"), b"")
    if "headers" not in names:
        return keys, values, None
    lists = rows.column("headers")
    if not pa.types.is_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    lists = _aligned(lists)
    pairs = lists.values
    names_column, contents = pairs.flatten()
    if names_column.null_count or pairs.null_count:
        raise ConfigError("a header without a name is in the column headers: Kafka has no such thing")
    valid, offsets = _places(lists)
    return keys, values, (valid, offsets, _bytes_column(names_column), _bytes_column(contents))


def _bytes_column(column: pa.Array) -> Column:
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.binary())
    column = _aligned(column)
    valid, offsets = _places(column)
    data = column.buffers()[2]
    return valid, offsets, b"" if data is None else memoryview(data).cast("B")


def _aligned(column: pa.Array) -> pa.Array:
    """A slice whose validity bits begin inside a byte is copied."""
    if column.offset % 8 and column.null_count:
        return column.take(pa.array(range(len(column)), pa.int32()))
    return column


def _places(column: pa.Array) -> tuple[memoryview | None, memoryview]:
    """The validity bits, if any row is null, and the offsets of a column's own rows."""
    bits, places = column.buffers()[:2]
    at, count = column.offset, len(column)
    if places is None:
        return None, memoryview(bytes(4)).cast("i")
    offsets = memoryview(places).cast("B")[4 * at : 4 * (at + count + 1)].cast("i")
    valid = memoryview(bits).cast("B")[at // 8 :] if column.null_count else None
    return valid, offsets


def _given_partitions(rows: pa.RecordBatch, topic: str, partitions: int) -> array[int]:
    """What the column partition says, and -1 where it is null or not there."""
    numbers: array[int] = array("i", [-1]) * rows.num_rows
    if "partition" not in rows.schema.names:
        return numbers
    column = rows.column("partition")
    if column.null_count < len(column):
        lowest, highest = pc.min_max(column).as_py().values()
        if lowest < 0 or highest >= partitions:
            wrong = lowest if lowest < 0 else highest
            raise ConfigError(f"topic {topic} has partitions 0 to {partitions - 1}; a row asks for {wrong}")
    filled = column.fill_null(-1)
    view = memoryview(filled.buffers()[1]).cast("B")[4 * filled.offset : 4 * (filled.offset + len(filled))]
    return array("i", bytes(view))
