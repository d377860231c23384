"""Batches that a cleaner must open: compressed ones, and messages of magic 0 and 1. They become plain v2 batches.

What stays of a compressed batch is compressed again with the same codec. Old messages stay v2: a batch of that format
can hold the gaps that cleaning leaves, and a tombstone's delete horizon.
"""

from __future__ import annotations

from array import array

from ottla.records import batch, compression, kernel, legacy
from ottla.records.builder import build_batch
from ottla.records.codec import Codec


def unpack(
    data: memoryview, rows: array[int], row: int, shift: int, max_output_bytes: int
) -> tuple[bytearray, array[int]]:
    """The batch of the row that begins at `row`, without compression, and its row in there."""
    start = rows[row + kernel.POSITION] - shift
    packed = data[start : start + rows[row + kernel.SIZE]]
    if rows[row + kernel.MAGIC] == batch.MAGIC_V2:
        header = batch.parse_header(packed)
        records = compression.decompress(header.codec, packed[batch.HEADER_SIZE :], max_output_bytes)
        plain = _build(header._replace(attributes=header.attributes & ~batch.CODEC_MASK), records)
    else:
        plain = _modernise(packed, max_output_bytes)
    plain_rows = array("q", bytes(8 * kernel.ROW))
    kernel.scan(plain, 0, len(plain), plain_rows, 0)
    return plain, plain_rows


def repack(
    data: memoryview, rows: array[int], row: int, shift: int, plain: bytearray, cleaned: memoryview
) -> bytes | bytearray | memoryview:
    """The batch to write: as it was if nothing changed, else what stays of it, compressed as it was."""
    start = rows[row + kernel.POSITION] - shift
    is_v2 = rows[row + kernel.MAGIC] == batch.MAGIC_V2
    if is_v2 and cleaned == plain:
        return data[start : start + rows[row + kernel.SIZE]]
    header = batch.parse_header(cleaned)
    codec = Codec(rows[row + kernel.ATTRIBUTES] & batch.CODEC_MASK)
    if not header.count or not codec:
        return cleaned
    records = compression.compress(codec, cleaned[batch.HEADER_SIZE :])
    return _build(header._replace(attributes=header.attributes | codec), records)


def _build(header: batch.BatchHeader, records: bytes | bytearray) -> bytearray:
    length = batch.HEADER_SIZE - batch.OVERHEAD_SIZE + len(records)
    built = bytearray(batch.HEADER.pack(*header._replace(length=length)))
    built += records
    batch.patch_times(built, 0, len(built), header.attributes, header.max_timestamp)
    return built


def _modernise(packed: memoryview, max_output_bytes: int) -> bytearray:
    """The v2 batch that holds the records of one message at their offsets and timestamps."""
    found = list(legacy.read_message_set(packed, 0, len(packed), max_output_bytes=max_output_bytes))
    base_offset = found[0].offset
    stamped = found[0].timestamp_type == legacy.LOG_APPEND_TIME
    return build_batch(
        [(record.timestamp, record.key, record.value, ()) for record in found],
        base_offset=base_offset,
        offset_deltas=[record.offset - base_offset for record in found],
        log_append_time=found[0].timestamp if stamped else None,
    )
