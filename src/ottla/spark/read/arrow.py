"""Turns raw batches into Arrow record batches: the schema, the buffers, and what the kernel cannot do by itself.

Memory is bounded whatever a partition's size: one set of buffers, one block of log, and for compressed batches one
window. A single record larger than a set of buffers gets one of its own size.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa

from ottla.errors import CorruptRecordError, DecompressionLimitError, InvalidRecordError
from ottla.names import TopicPartition
from ottla.records import batch, kernel
from ottla.records.columnar import arrow_kernel
from ottla.records.columnar.arrow_kernel import BAD, FULL, PACKED, PAST, Columns
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import decompress, windows
from ottla.records.legacy.message_set import LOG_APPEND_TIME, read_messages
from ottla.spark.options import CORRUPT, HEADERS
from ottla.spark.transport.base import BadBytes, Block

ROWS = 100_000
DATA_BYTES = 16 << 20
_FIRST_DATA_BYTES = 64 << 10  # most splits of small topics need no more
_WHOLE_BYTES = 16 << 20  # a compressed batch up to this size is opened at once
_WINDOW_BYTES = 4 << 20
_MESSAGE_SET_BYTES = 256 << 20
_HEADER_ROOM = 4  # headers a row, at first
_ROWS = 2048

_HEADER_TYPE = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.field("element", _HEADER_TYPE)),
    CORRUPT: pa.binary(),
}
_MASK = {
    "key": arrow_kernel.KEY,
    "value": arrow_kernel.VALUE,
    "offset": arrow_kernel.OFFSET,
    "timestamp": arrow_kernel.TIMESTAMP,
    "timestampType": arrow_kernel.TIMESTAMP_TYPE,
    HEADERS: arrow_kernel.HEADERS,
}


def schema_of(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([(name, TYPES[name]) for name in columns])


class Builder:
    """Fills record batches of one partition; `take` gives those that became full, `finish` the rest."""

    def __init__(
        self, columns: tuple[str, ...], partition: TopicPartition, from_offset: int, to_offset: int
    ) -> None:
        self._schema = schema_of(columns)
        self._partition = partition
        self._mask = sum(_MASK.get(name, 0) for name in columns)
        self._columns = Columns(self._mask, from_offset, to_offset)
        self._data_bytes = _FIRST_DATA_BYTES
        self._room = max(1, min(ROWS, to_offset - from_offset))
        self._constants: dict[str, Any] = {}
        self.is_past = False  # everything wanted has been seen
        self._renew()

    # -- records in

    def take(self, block: Block) -> Iterator[pa.RecordBatch | BadBytes]:
        """The record batches that the block fills; between them, the batches of it whose records are malformed."""
        row = 0
        while row < block.count:
            row, status = self._columns.fill(
                block.data, block.rows, row, block.count, block.shift, block.aborted
            )
            if status == FULL:
                yield from self._flush()
            elif status == PAST:
                self.is_past = True
                return
            elif status == BAD:
                yield _bad_batch(block, row, "its records are not what its header promises")
                row += 1
            elif status == PACKED:
                try:
                    yield from self._unpack(block, row)
                except (CorruptRecordError, InvalidRecordError) as error:
                    yield _bad_batch(block, row, str(error))
                row += 1

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is there so far."""
        if self._columns.state()[0]:
            yield self._batch()
            self._renew()

    def _unpack(self, block: Block, row: int) -> Iterator[pa.RecordBatch]:
        """The records of one compressed batch."""
        at = row * kernel.ROW
        codec = Codec(block.rows[at + kernel.ATTRIBUTES] & batch.CODEC_MASK)
        start, size = block.rows[at + kernel.POSITION] - block.shift, block.rows[at + kernel.SIZE]
        data = memoryview(block.data)[start : start + size]
        if block.rows[at + kernel.MAGIC] < batch.MAGIC_V2:
            yield from self._wrapper(data)
            return
        found = 0
        rest = b""
        for piece in _pieces(codec, data[batch.HEADER_SIZE :]):
            piece = b"".join((rest, piece)) if rest else piece
            position, status = 0, FULL
            while status == FULL:
                count, position, status = self._columns.fill_records(
                    piece, position, len(piece), block.rows, row
                )
                found += count
                if status == FULL:
                    yield from self._flush()
            if status == BAD:
                break
            rest = bytes(piece[position:])
        announced = block.rows[at + kernel.COUNT]
        if rest or found != announced:
            raise CorruptRecordError(f"{found} of {announced} records are good")

    def _wrapper(self, data: memoryview) -> Iterator[pa.RecordBatch]:
        """The records of a compressed message of magic 0 or 1."""
        (message,) = read_messages(data, 0, len(data))
        magic, wrapper = message.magic, message.record
        if wrapper.value is None:
            raise CorruptRecordError("a compressed message without a value")
        inner = decompress(message.codec, wrapper.value, _MESSAGE_SET_BYTES, lz4_legacy_checksum=magic == 0)
        rows = array("q", bytes(8 * kernel.ROW * _ROWS))
        # Offsets of magic 1 are relative to the wrapper's, which is that of its last message.
        last = 0
        for count in _scan(inner, rows):
            last = rows[(count - 1) * kernel.ROW + kernel.BASE_OFFSET]
        shift = wrapper.offset - last if magic == 1 and wrapper.offset else 0
        if shift < 0:
            raise CorruptRecordError(f"a wrapper at offset {wrapper.offset} ends with relative offset {last}")
        is_stamped = wrapper.timestamp_type == LOG_APPEND_TIME
        for count in _scan(inner, rows):
            row, status = 0, FULL
            while status == FULL:
                row, status = self._columns.fill_messages(
                    inner, rows, row, count, magic, shift, is_stamped, wrapper.timestamp
                )
                if status == FULL:
                    yield from self._flush()
            if status == BAD:
                raise CorruptRecordError("a compressed message wraps what it must not")

    # -- record batches out

    def corrupt(self, bad: BadBytes) -> pa.RecordBatch:
        """One row for bytes that could not be read."""
        found = {
            "topic": self._partition.topic,
            "partition": self._partition.partition,
            "offset": bad.from_offset,
            CORRUPT: bad.data,
        }
        arrays = [pa.array([found.get(field.name)], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        if self._columns.state()[0]:
            yield self._batch()
        self._data_bytes = DATA_BYTES
        self._renew()

    def _renew(self) -> None:
        key_bytes, value_bytes, headers, header_bytes = self._columns.needs()
        mask, room = self._mask, self._room
        header_room = max(_HEADER_ROOM * room, headers) if mask & arrow_kernel.HEADERS else 0
        data_bytes = self._data_bytes

        def buffer(column: int, size: int, format: Literal["B", "i", "q"] = "B") -> Any:
            return _Buffer(size, format) if mask & column else None

        def ends(column: int, count: int) -> Any:
            found = buffer(column, 4 * (count + 1), "i")
            if found is not None:
                found.view[0] = 0
            return found

        def bits(column: int, count: int) -> Any:
            return _zeros((count + 7) // 8) if mask & column else None

        key, value, header = arrow_kernel.KEY, arrow_kernel.VALUE, arrow_kernel.HEADERS
        self._buffers = (
            buffer(arrow_kernel.OFFSET, 8 * room, "q"),
            buffer(arrow_kernel.TIMESTAMP, 8 * room, "q"),
            buffer(arrow_kernel.TIMESTAMP_TYPE, 4 * room, "i"),
            ends(key, room),
            bits(key, room),
            buffer(key, max(data_bytes, key_bytes)),
            ends(value, room),
            bits(value, room),
            buffer(value, max(data_bytes, value_bytes)),
            ends(header, room),
            bits(header, room),
            ends(header, header_room),
            buffer(header, max(data_bytes, header_bytes)),
            ends(header, header_room),
            bits(header, header_room),
            buffer(header, max(data_bytes, header_bytes)),
        )
        self._columns.renew(room, header_room, tuple(b.view if b else None for b in self._buffers))

    def _batch(self) -> pa.RecordBatch:
        rows, (_, null_keys), (_, null_values), headers, _, header_data, plain_names = self._columns.state()
        b = self._buffers
        arrays = []
        for field in self._schema:
            name = field.name
            if name in ("topic", "partition"):
                arrays.append(self._constant(name, rows))
            elif name == "offset":
                arrays.append(_fixed(field.type, rows, b[0]))
            elif name == "timestamp":
                arrays.append(_fixed(field.type, rows, b[1]))
            elif name == "timestampType":
                arrays.append(_fixed(field.type, rows, b[2]))
            elif name == "key":
                arrays.append(_binary(field.type, rows, null_keys, b[3], b[4], b[5]))
            elif name == "value":
                arrays.append(_binary(field.type, rows, null_values, b[6], b[7], b[8]))
            elif name == HEADERS:
                names = _binary(pa.string(), headers[0], 0, b[11], None, b[12])
                if not plain_names:
                    names = _readable(names)
                values = _binary(pa.binary(), headers[0], header_data[1], b[13], b[14], b[15])
                pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER_TYPE))
                valid = b[10].used if headers[1] else None
                arrays.append(
                    pa.Array.from_buffers(field.type, rows, [valid, b[9].used], headers[1], children=[pairs])
                )
            else:
                arrays.append(pa.nulls(rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, name: str, rows: int) -> pa.Array:
        """A column with the same in every row: built once, and cut to size."""
        known = self._constants.get(name)
        if known is None or len(known) < rows:
            known = self._constants[name] = _repeated(self._partition, name, rows)
        return known.slice(0, rows)


def _repeated(partition: TopicPartition, name: str, rows: int) -> pa.Array:
    # Not pa.repeat: with it comes all of pyarrow.compute, a second in each new Python worker.
    if name == "partition":
        numbers = pa.py_buffer(array("i", [partition.partition]) * rows)
        return pa.Array.from_buffers(TYPES[name], rows, [None, numbers], 0)
    topic = partition.topic.encode()
    ends = pa.py_buffer(array("i", range(0, len(topic) * rows + 1, len(topic))))
    return pa.Array.from_buffers(TYPES[name], rows, [None, ends, pa.py_buffer(topic * rows)], 0)


class _Buffer:
    """Memory of Arrow's, and a view of it for the kernel."""

    __slots__ = ("used", "view")

    def __init__(self, size: int, format: Literal["B", "i", "q"]) -> None:
        self.used = pa.allocate_buffer(size)
        self.view = memoryview(self.used).cast("B").cast(format)


def _zeros(size: int) -> Any:
    found = _Buffer.__new__(_Buffer)
    data = bytearray(size)
    found.used, found.view = pa.py_buffer(data), memoryview(data)
    return found


def _fixed(type_: pa.DataType, rows: int, data: Any) -> pa.Array:
    return pa.Array.from_buffers(type_, rows, [None, data.used], 0)


def _binary(type_: pa.DataType, rows: int, nulls: int, ends: Any, bits: Any, data: Any) -> pa.Array:
    return pa.Array.from_buffers(type_, rows, [bits.used if nulls else None, ends.used, data.used], nulls)


def _readable(names: pa.Array) -> pa.Array:
    """Header names are UTF-8 by Kafka's rules; where one is not, what cannot be read is replaced."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.view(pa.binary()).to_pylist()
        return pa.array([name.decode(errors="replace") for name in raw], pa.string())
    return names


def _pieces(codec: Codec, body: memoryview) -> Iterator[bytes | bytearray | memoryview]:
    """The decompressed records: at once where they are few, else window by window."""
    try:
        whole = decompress(codec, body, _WHOLE_BYTES)
    except DecompressionLimitError:
        yield from windows(codec, body, _WINDOW_BYTES)
    else:
        yield whole


def _scan(inner: bytes | bytearray, rows: array[int]) -> Iterator[int]:
    """How many rows are filled, again and again, until all messages have been there."""
    at, status = 0, kernel.OK
    while at < len(inner) and status == kernel.OK:
        count, at, status = kernel.scan(inner, at, len(inner), rows, kernel.CHECK_CRC)
        if count:
            yield count
    if status != kernel.OK or not inner:
        raise CorruptRecordError(f"inside a compressed message: {kernel.STATUS_MEANING[status]}")


def _bad_batch(block: Block, row: int, meaning: str) -> BadBytes:
    at = row * kernel.ROW
    position, size = block.rows[at + kernel.POSITION], block.rows[at + kernel.SIZE]
    start = position - block.shift
    data = bytes(memoryview(block.data)[start : start + size])
    offsets = block.rows[at + kernel.BASE_OFFSET], block.rows[at + kernel.LAST_OFFSET] + 1
    return BadBytes(block.where, position, *offsets, meaning, data)
