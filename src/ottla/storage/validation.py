"""Checks what a leader is about to append, and gives it offsets and times. Pure: bytes in, bytes out.

The usual batch (magic 2, not compressed) is checked in one call into the kernel and patched where it lies. The other
cases (old formats, another codec than the topic's, trailing bytes, anything wrong) leave that path early.
"""

from __future__ import annotations

from array import array
from enum import Enum
from typing import Final, NamedTuple

from ottla.config import LogConfig
from ottla.errors import (
    BrokerError,
    CorruptRecordError,
    DecompressionLimitError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnpackedTooLargeError,
)
from ottla.records import batch, compression, kernel, legacy
from ottla.records.codec import Codec
from ottla.storage.fs import Bytes

MAX_RECORD_ERRORS: Final = 10


class Origin(Enum):
    """Who appends. Only the broker itself may write control batches."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


# The usual origin; a look through the Enum takes longer than most of the checks.
_CLIENT: Final = Origin.CLIENT


class Validated(NamedTuple):
    """One batch, ready to be written."""

    data: Bytes
    size: int
    attributes: int
    first_offset: int
    last_offset: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    log_append_time: int  # -1 unless the topic stamps records itself


def validate(
    records: Bytes,
    next_offset: int,
    leader_epoch: int,
    config: LogConfig,
    now_ms: int,
    origin: Origin = _CLIENT,
    *,
    is_measured: bool = False,
) -> Validated:
    """Check the one batch in `records`, assign offsets from `next_offset` on, set the leader epoch and times.

    `is_measured`: it was made of messages none of which is too large.
    """
    length = len(records)
    if length > config.max_message_bytes and not is_measured:
        _refuse_too_large(records, config.max_message_bytes)
    (
        status, size, base_offset, attributes, last_delta, base_timestamp, header_max, producer_id, producer_epoch,
        base_sequence, count, bad_index, min_timestamp, max_timestamp, _, null_keys,
    ) = kernel.check_batch(records, 0, length)  # fmt: skip
    if status != kernel.OK:
        if length > batch.MAGIC_AT and records[batch.MAGIC_AT] < batch.MAGIC_V2:
            converted = _converted(records, config)
            return validate(converted, next_offset, leader_epoch, config, now_ms, origin, is_measured=True)
        raise _explain(status, bad_index, length, size)
    if origin is _CLIENT and (base_offset or attributes & batch.CONTROL or producer_id >= 0 > base_sequence):
        raise _forbidden(base_offset, attributes, producer_id, base_sequence)
    if size != length:
        records = _trim(records, size)
    if attributes & batch.CODEC_MASK or config.compression_type != "producer":
        records, size, attributes, min_timestamp, max_timestamp, null_keys = _through_codec(
            records, size, attributes, count, base_timestamp, config
        )
    if null_keys and config.compact and not attributes & batch.CONTROL:
        raise _without_key(records, size, config)
    if not isinstance(records, bytearray):
        records = _writable(records)
    append_time = -1
    stamped = attributes & batch.LOG_APPEND_TIME
    if config.message_timestamp_type == "LogAppendTime":
        if stamped and origin is _CLIENT:
            raise _own_append_time(count)
        append_time = max_timestamp = now_ms
        attributes |= batch.LOG_APPEND_TIME
    elif (
        max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or 0 <= min_timestamp < now_ms - config.message_timestamp_before_max_ms
    ):
        raise _bad_time(records, size, config, now_ms)
    if max_timestamp != header_max or append_time >= 0 or stamped:
        attributes = attributes if append_time >= 0 else attributes & ~batch.LOG_APPEND_TIME
        batch.patch_times(records, 0, size, attributes, max_timestamp)
    # Offset and epoch lie outside the CRC: this is all that most batches need.
    batch.OFFSETS.pack_into(records, 0, next_offset, size - batch.OVERHEAD_SIZE, leader_epoch)
    # Not Validated(...): what that adds is a tenth of all that Python does for a batch.
    return tuple.__new__(Validated, (
        records, size, attributes, next_offset, next_offset + last_delta, max_timestamp, producer_id, producer_epoch,
        base_sequence, append_time,
    ))  # fmt: skip


def _converted(records: Bytes, config: LogConfig) -> bytearray:
    """The batch that a set of old messages becomes."""
    try:
        return legacy.to_v2(records, max_output_bytes=config.decompression_max_bytes)
    except DecompressionLimitError as error:
        raise _unpacked_too_large(error, config) from error


def _unpacked_too_large(error: DecompressionLimitError, config: LogConfig) -> UnpackedTooLargeError:
    return UnpackedTooLargeError(
        f"{error}; ottla.decompression.max.bytes allows no more: send smaller batches, or raise it"
    )


def _writable(records: bytes | memoryview) -> bytearray | memoryview:
    return bytearray(records) if isinstance(records, bytes) or records.readonly else records


def _own_append_time(count: int) -> InvalidTimestampError:
    message = "a producer may not set the timestamp type LogAppendTime"
    return InvalidTimestampError(
        message, [(index, message) for index in range(min(count, MAX_RECORD_ERRORS))]
    )


def _bad_time(records: Bytes, size: int, config: LogConfig, now_ms: int) -> InvalidTimestampError:
    """Names the records that are too old, or too far ahead."""
    latest = now_ms + config.message_timestamp_after_max_ms
    earliest = now_ms - config.message_timestamp_before_max_ms
    bad = [
        (index, timestamp)
        for index, timestamp in enumerate(_column(records, size, config, kernel.REC_TIMESTAMP))
        if timestamp > latest or 0 <= timestamp < earliest
    ]
    message = (
        f"timestamp {bad[0][1]} lies outside of {config.message_timestamp_before_max_ms} ms in the past "
        f"(message.timestamp.before.max.ms) to {config.message_timestamp_after_max_ms} ms in the future "
        "(message.timestamp.after.max.ms)"
    )
    return InvalidTimestampError(message, [(index, message) for index, _ in bad[:MAX_RECORD_ERRORS]])


def _column(records: Bytes, size: int, config: LogConfig, column: int) -> array[int]:
    """One number of each record: to say which ones are refused, never on the way of those that are not."""
    header = batch.parse_header(records)
    payload: Bytes = memoryview(records)[batch.HEADER_SIZE : size]
    if header.codec:
        payload = compression.decompress(Codec(header.codec), payload, config.decompression_max_bytes)
    rows = array("q", bytes(8 * kernel.REC_ROW * header.count))
    kernel.decode(payload, 0, len(payload), 0, header.base_timestamp, rows)
    return rows[column :: kernel.REC_ROW]


def _through_codec(
    records: Bytes, size: int, attributes: int, count: int, base_timestamp: int, config: LogConfig
) -> tuple[Bytes, int, int, int, int, int]:
    """Check the records inside, and compress them anew where the topic wants another codec.

    (records, size, attributes, smallest timestamp, largest timestamp, records without a key)
    """
    codec = attributes & batch.CODEC_MASK
    body = memoryview(records)[batch.HEADER_SIZE : size]
    try:
        payload = (
            compression.decompress(Codec(codec), body, config.decompression_max_bytes) if codec else body
        )
    except DecompressionLimitError as error:
        raise _unpacked_too_large(error, config) from error
    except CorruptRecordError as error:
        # The CRC is right, so this is what the producer made: to send it again does not help.
        raise InvalidRecordError(str(error)) from error
    status, bad_index, min_timestamp, max_timestamp, _, null_keys = kernel.check_records(
        payload, 0, len(payload), count, base_timestamp, True
    )
    if status != kernel.OK:
        raise _explain(status, bad_index, size, size)
    # The broker's own control batches stay as they are: their reader expects them uncompressed.
    keep = config.compression_type == "producer" or attributes & batch.CONTROL
    wanted = codec if keep else _codec_number(config.compression_type)
    if wanted != codec:
        attributes = attributes & ~batch.CODEC_MASK | wanted
        records = _recompress(records, payload, attributes, config)
        size = len(records)
        if size > config.max_message_bytes:
            _refuse_too_large(records, config.max_message_bytes)
    return records, size, attributes, min_timestamp, max_timestamp, null_keys


def _recompress(records: Bytes, payload: Bytes, attributes: int, config: LogConfig) -> bytearray:
    codec = Codec(attributes & batch.CODEC_MASK)
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    packed = compression.compress(codec, payload, levels.get(codec))
    rebuilt = bytearray(records[: batch.HEADER_SIZE]) + packed
    rebuilt[8 : batch.OVERHEAD_SIZE] = (len(rebuilt) - batch.OVERHEAD_SIZE).to_bytes(4, "big")
    batch.patch_times(rebuilt, 0, len(rebuilt), attributes, batch.parse_header(rebuilt).max_timestamp)
    return rebuilt


def _codec_number(compression_type: str) -> int:
    return Codec.NONE if compression_type == "uncompressed" else Codec[compression_type.upper()]


def _trim(records: Bytes, size: int) -> memoryview:
    """Bytes after the batch that do not make another one are dropped; another whole batch is an error."""
    rows = array("q", bytes(8 * kernel.ROW))
    count, _, _ = kernel.scan(records, size, len(records), rows, 0)
    if count:
        raise InvalidRecordError("a produce request holds exactly one record batch for each partition")
    return memoryview(records)[:size]


def _refuse_too_large(records: Bytes, limit: int) -> None:
    """A batch is measured whole, a set of old messages message by message."""
    position = 0
    while position + batch.MAGIC_AT < len(records):
        size = int.from_bytes(records[position + 8 : position + 12], "big", signed=True) + batch.OVERHEAD_SIZE
        if size > limit:
            raise RecordTooLargeError(f"the batch has {size} bytes; max.message.bytes allows {limit}")
        if size <= batch.MAGIC_AT or records[position + batch.MAGIC_AT] >= batch.MAGIC_V2:
            return
        position += size


def _explain(status: int, bad_index: int, length: int, size: int) -> BrokerError:
    meaning = kernel.STATUS_MEANING[status]
    if status == kernel.TRUNCATED:
        # Kafka sees no batch at all here, so it is no corruption that a retry could mend.
        return InvalidRecordError(f"there is no whole batch in {length} bytes: {meaning}")
    if status in (kernel.BAD_COUNT, kernel.BAD_OFFSETS, kernel.BAD_ATTRIBUTES):
        return InvalidRecordError(f"the batch is not valid: {meaning}")
    if status == kernel.BAD_RECORD:
        return InvalidRecordError(f"record {bad_index} of the batch is not valid: {meaning}")
    return CorruptRecordError(f"the batch ({size} of {length} bytes) is corrupt: {meaning}")


def _forbidden(base_offset: int, attributes: int, producer_id: int, base_sequence: int) -> InvalidRecordError:
    if base_offset:
        return InvalidRecordError(f"the base offset of a produced batch must be 0, not {base_offset}")
    if attributes & batch.CONTROL:
        return InvalidRecordError("clients may not write control records")
    return InvalidRecordError(f"producer {producer_id} sent the sequence number {base_sequence}")


def _without_key(records: Bytes, size: int, config: LogConfig) -> InvalidRecordError:
    """Names the records that a compacted topic cannot take."""
    key_sizes = _column(records, size, config, kernel.REC_KEY_SIZE)
    keyless = [index for index, key_size in enumerate(key_sizes) if key_size < 0]
    message = "a compacted topic cannot accept a record without a key"
    return InvalidRecordError(message, [(index, message) for index in keyless[:MAX_RECORD_ERRORS]])
