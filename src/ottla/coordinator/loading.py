"""Reads an internal partition from its start, window by window. Runs where reads may block.

A record that cannot be understood is left out with a line in the log: all others of the partition still count.
"""

from __future__ import annotations

import logging
from array import array
from typing import Generic, NamedTuple

from ottla.coordinator.result import R, RecordCodec
from ottla.errors import CorruptRecordError
from ottla.internal_topics.fields import MalformedError
from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.records.batch import CONTROL, MAGIC_V2, TRANSACTIONAL
from ottla.records.control import Marker, parse_marker
from ottla.records.legacy.message_set import read_message_set
from ottla.records.record import read_records
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation

_logger = logging.getLogger(__name__)

WINDOW_BYTES = 1 << 20
_ROWS = 2048


class LoadedBatch(NamedTuple, Generic[R]):
    """A batch of the internal topic: records, or the end of a transaction."""

    producer_id: int  # -1 outside of transactions
    marker: Marker | None
    last_offset: int
    records: list[tuple[int, R]]  # with their offsets


class Window(NamedTuple, Generic[R]):
    batches: list[LoadedBatch[R]]
    next_offset: int


def read_window(log: Log, offset: int, codec: RecordCodec[R]) -> Window[R] | None:
    """The batches from `offset` on, as far as one window goes; None at the log's end."""
    if offset >= log.end_offset:
        return None
    found = log_reader.read(log, offset, WINDOW_BYTES, isolation=Isolation.LOG_END).slice
    if found is None:
        return None
    data = found.read()
    rows = array("q", bytes(8 * kernel.ROW * _ROWS))
    count, _, status = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)
    if not count and status != kernel.OK:
        raise CorruptRecordError(f"{log.partition} at offset {offset}: {kernel.STATUS_MEANING[status]}")
    batches = []
    skipped: list[tuple[int, Exception]] = []
    for at in range(0, count * kernel.ROW, kernel.ROW):
        row = rows[at : at + kernel.ROW]
        if row[kernel.LAST_OFFSET] >= offset:
            batches.append(_batch(log, data, row, codec, skipped))
    if skipped:
        tell_skipped(log.partition, *skipped[0], len(skipped))
    next_offset = rows[(count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
    return Window(batches, next_offset)


def _batch(
    log: Log, data: bytes, row: array[int], codec: RecordCodec[R], skipped: list[tuple[int, Exception]]
) -> LoadedBatch[R]:
    position, attributes = row[kernel.POSITION], row[kernel.ATTRIBUTES]
    is_v2 = row[kernel.MAGIC] == MAGIC_V2
    if is_v2 and attributes & CONTROL:
        marker = parse_marker(data, position)
        return LoadedBatch(row[kernel.PRODUCER_ID], marker, row[kernel.LAST_OFFSET], [])
    raw = (
        read_records(data, position)
        if is_v2
        else read_message_set(
            data, position, position + row[kernel.SIZE], max_output_bytes=log.config.decompression_max_bytes
        )
    )
    records = []
    for record in raw:
        try:
            decoded = codec.decode(record.key, record.value)
        except MalformedError as error:
            skipped.append((record.offset, error))
            continue
        if decoded is not None:
            records.append((record.offset, decoded))
    producer_id = row[kernel.PRODUCER_ID] if is_v2 and attributes & TRANSACTIONAL else -1
    return LoadedBatch(producer_id, None, row[kernel.LAST_OFFSET], records)


def tell_skipped(partition: TopicPartition, offset: int, error: Exception, count: int = 1) -> None:
    """Say loudly that records are left out."""
    _logger.error(
        "%s, offset %d: a record that cannot be understood is left out: %s%s. What it says of its group or transaction "
        "is lost; `ottla log verify` lists such records, `ottla log dump --records` shows them",
        partition,
        offset,
        error,
        f" (and {count - 1} more near it)" if count > 1 else "",
    )
