"""Batches that a cleaner must open: compressed ones, and messages of magic 0 and 1. They become plain v2 batches.

What stays of a compressed batch is compressed again with the same codec. Old messages stay v2: a batch of that format
can hold the gaps that cleaning leaves, and a tombstone's delete horizon.
"""

from __future__ import annotations

from array import array

from ottla.names import Bytes
from ottla.records import batch, kernel
from ottla.records.builder import build_batch
from ottla.records.compression import streams as compression
from ottla.records.compression.codec import Codec
from ottla.records.legacy import conversion as legacy


class PackedBatch:
    """One batch and its plain twin: `plain` is that batch alone, `rows` what kernel.scan() says of it."""

    def __init__(self, packed: memoryview, max_output_bytes: int) -> None:
        self._packed = packed
        self._is_v2 = packed[batch.MAGIC_AT] == batch.MAGIC_V2
        if self._is_v2:
            header = batch.parse_header(packed)
            self._codec = header.codec
            records = compression.decompress(header.codec, packed[batch.HEADER_SIZE :], max_output_bytes)
            self.plain = _build(header._replace(attributes=header.attributes & ~batch.CODEC_MASK), records)
        else:
            self._codec = Codec(packed[batch.MAGIC_AT + 1] & batch.CODEC_MASK)
            self.plain = _modernise(packed, max_output_bytes)
        self.rows = array("q", bytes(8 * kernel.ROW))
        kernel.scan(self.plain, 0, len(self.plain), self.rows, 0)

    def repack(self, cleaned: memoryview) -> Bytes:
        """What to write for `cleaned`, which is what stays of `plain`: the old bytes if that is all of it."""
        if self._is_v2 and cleaned == self.plain:
            return self._packed
        header = batch.parse_header(cleaned)
        if not header.count or not self._codec:
            return cleaned
        records = compression.compress(self._codec, cleaned[batch.HEADER_SIZE :])
        return _build(header._replace(attributes=header.attributes | self._codec), records)


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
