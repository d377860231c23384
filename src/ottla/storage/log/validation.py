"""Checks what a leader is about to append, and gives it offsets and times. Pure: bytes in, bytes out.

The usual batch (magic 2, not compressed) is checked in one call into the kernel and patched where it lies. The other
cases (old formats, another codec than the topic's, trailing bytes, anything wrong) leave that path early.

How long a batch takes is not seen from its size: a kilobyte may unpack to a hundred megabytes. Whoever must not be kept
for long says how much may be unpacked, and gets TakesLongError for the rest. That is validated elsewhere, without such
a limit, and then `placed` at the end of the log.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
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
from ottla.names import Bytes
from ottla.records import batch, kernel, unpacking
from ottla.records.compression import streams as compression
from ottla.records.compression.codec import Codec
from ottla.records.legacy import conversion as legacy

MAX_RECORD_ERRORS: Final = 10
UNLIMITED: Final = sys.maxsize
# Formats that are converted record by record, and records packed anew, take so much longer than those only unpacked.
_CONVERTED_SHARE: Final = 64
_PACKED_SHARE: Final = 16
_ROWS: Final = 4096  # of records that are looked at together, to say which are refused


class Origin(Enum):
    """Who appends. Only the broker itself may write control batches."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


# The usual origin; a look through the Enum takes longer than most of the checks.
_CLIENT: Final = Origin.CLIENT


class TakesLongError(Exception):
    """More must be unpacked or converted to check this batch than whoever asked has time for."""


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
    max_unpacked_bytes: int = UNLIMITED,
    *,
    is_measured: bool = False,
) -> Validated:
    """Check the one batch in `records`, assign offsets from `next_offset` on, set the leader epoch and times.

    TakesLongError where more than `max_unpacked_bytes` would have to be unpacked for that.
    `is_measured`: it was made of messages none of which is too large.
    """
    length = len(records)
    if length > config.max_message_bytes and not is_measured:
        _refuse_too_large(records, config.max_message_bytes, max_unpacked_bytes)
    (
        status, size, base_offset, attributes, last_delta, base_timestamp, header_max, producer_id, producer_epoch,
        base_sequence, count, bad_index, min_timestamp, max_timestamp, _, null_keys,
    ) = kernel.check_batch(records, 0, length)  # fmt: skip
    if status != kernel.OK:
        if length <= batch.MAGIC_AT or records[batch.MAGIC_AT] >= batch.MAGIC_V2:
            raise _explain(status, bad_index, length, size)
        records = _converted(records, config, max_unpacked_bytes)
        return validate(
            records, next_offset, leader_epoch, config, now_ms, origin, max_unpacked_bytes, is_measured=True
        )
    if origin is _CLIENT and (base_offset or attributes & batch.CONTROL or producer_id >= 0 > base_sequence):
        raise _forbidden(base_offset, attributes, producer_id, base_sequence)
    if size != length:
        records = _trim(records, size)
    if attributes & batch.CODEC_MASK or config.compression_type != "producer":
        records, size, attributes, min_timestamp, max_timestamp, null_keys = _through_codec(
            records, size, attributes, count, base_timestamp, config, max_unpacked_bytes
        )
    if null_keys and config.compact and not attributes & batch.CONTROL:
        raise _without_key(records, size, count, config, max_unpacked_bytes)
    if not isinstance(records, bytearray):
        records = _writable(records)
    append_time = -1
    if config.message_timestamp_type == "LogAppendTime":
        max_timestamp = append_time = now_ms
        attributes = _stamp(records, size, attributes, count, now_ms, origin)
    elif (
        max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or 0 <= min_timestamp < now_ms - config.message_timestamp_before_max_ms
    ):
        raise _bad_time(records, size, count, config, now_ms, max_unpacked_bytes)
    elif max_timestamp != header_max or attributes & batch.LOG_APPEND_TIME:
        attributes &= ~batch.LOG_APPEND_TIME
        batch.patch_times(records, 0, size, attributes, max_timestamp)
    # Offset and epoch lie outside the CRC: this is all that most batches need.
    batch.OFFSETS.pack_into(records, 0, next_offset, size - batch.OVERHEAD_SIZE, leader_epoch)
    # Not Validated(...): what that adds is a tenth of all that Python does for a batch.
    return tuple.__new__(Validated, (
        records, size, attributes, next_offset, next_offset + last_delta, max_timestamp, producer_id, producer_epoch,
        base_sequence, append_time,
    ))  # fmt: skip


def _stamp(
    records: bytearray | memoryview, size: int, attributes: int, count: int, now_ms: int, origin: Origin
) -> int:
    """Give a batch the time of its append, where the topic wants that; its attributes then."""
    if attributes & batch.LOG_APPEND_TIME and origin is _CLIENT:
        message = "a producer may not set the timestamp type LogAppendTime"
        raise InvalidTimestampError(
            message, [(index, message) for index in range(min(count, MAX_RECORD_ERRORS))]
        )
    attributes |= batch.LOG_APPEND_TIME
    batch.patch_times(records, 0, size, attributes, now_ms)
    return attributes


def placed(checked: Validated, next_offset: int, leader_epoch: int) -> Validated:
    """A batch that was validated before it was known where it goes."""
    count = checked.last_offset - checked.first_offset
    data = checked.data
    batch.OFFSETS.pack_into(data, 0, next_offset, checked.size - batch.OVERHEAD_SIZE, leader_epoch)
    return checked._replace(first_offset=next_offset, last_offset=next_offset + count)


def is_packed(records: Bytes) -> bool:
    """Whether its records must be unpacked or converted: only then a batch can take long."""
    if len(records) < batch.HEADER_SIZE:
        return False
    return records[batch.MAGIC_AT] < batch.MAGIC_V2 or bool(
        records[batch.ATTRIBUTES_AT + 1] & batch.CODEC_MASK
    )


def _converted(records: Bytes, config: LogConfig, max_unpacked_bytes: int) -> bytearray:
    """The batch that a set of old messages becomes; one that is cut off at its end is dropped."""
    allowed = limit = config.decompression_max_bytes
    if max_unpacked_bytes != UNLIMITED:
        allowed = min(limit, max_unpacked_bytes // _CONVERTED_SHARE)
        if len(records) > allowed:
            raise TakesLongError
    try:
        return legacy.to_v2(legacy.whole_messages(records), max_output_bytes=allowed)
    except DecompressionLimitError as error:
        if allowed < limit:
            raise TakesLongError from error
        raise _unpacked_too_large(error, config) from error


def _unpacked_too_large(error: DecompressionLimitError, config: LogConfig) -> UnpackedTooLargeError:
    return UnpackedTooLargeError(
        f"{error}; ottla.decompression.max.bytes allows no more: send smaller batches, or raise it"
    )


def _writable(records: bytes | memoryview) -> bytearray | memoryview:
    return bytearray(records) if isinstance(records, bytes) or records.readonly else records


def _bad_time(
    records: Bytes, size: int, count: int, config: LogConfig, now_ms: int, max_unpacked_bytes: int
) -> InvalidTimestampError:
    """Names the first records that are too old, or too far ahead."""
    if count > _ROWS and max_unpacked_bytes != UNLIMITED:
        raise TakesLongError
    latest = now_ms + config.message_timestamp_after_max_ms
    earliest = now_ms - config.message_timestamp_before_max_ms
    bad: list[tuple[int, int]] = []
    for first, timestamps in _column(records, size, config, kernel.REC_TIMESTAMP):
        if max(timestamps) > latest or min(timestamps) < earliest:
            bad += [
                (first + index, timestamp)
                for index, timestamp in enumerate(timestamps)
                if timestamp > latest or 0 <= timestamp < earliest
            ]
        if len(bad) >= MAX_RECORD_ERRORS:
            break
    message = (
        f"timestamp {bad[0][1]} lies outside of {config.message_timestamp_before_max_ms} ms in the past "
        f"(message.timestamp.before.max.ms) to {config.message_timestamp_after_max_ms} ms in the future "
        "(message.timestamp.after.max.ms)"
    )
    return InvalidTimestampError(message, [(index, message) for index, _ in bad[:MAX_RECORD_ERRORS]])


def _column(records: Bytes, size: int, config: LogConfig, column: int) -> Iterator[tuple[int, array[int]]]:
    """One number of each record, some thousands at a time with the index of the first of them: to say which ones are
    refused, never on the way of those that are not."""
    header = batch.parse_header(records)
    payload: Bytes = memoryview(records)[batch.HEADER_SIZE : size]
    if header.codec:
        payload = compression.decompress(Codec(header.codec), payload, config.decompression_max_bytes)
    rows = array("q", bytes(8 * kernel.REC_ROW * min(header.count, _ROWS)))
    first = position = 0
    while first < header.count:
        found, position, _ = kernel.decode(payload, position, len(payload), 0, header.base_timestamp, rows)
        yield first, rows[column : found * kernel.REC_ROW : kernel.REC_ROW]
        first += found


def _through_codec(
    records: Bytes,
    size: int,
    attributes: int,
    count: int,
    base_timestamp: int,
    config: LogConfig,
    max_unpacked_bytes: int,
) -> tuple[Bytes, int, int, int, int, int]:
    """Check the records inside, and compress them anew where the topic wants another codec.

    (records, size, attributes, smallest timestamp, largest timestamp, records without a key)
    """
    codec = attributes & batch.CODEC_MASK
    body = memoryview(records)[batch.HEADER_SIZE : size]
    # The broker's own control batches stay as they are: their reader expects them uncompressed.
    keep = config.compression_type == "producer" or attributes & batch.CONTROL
    wanted = codec if keep else _codec_number(config.compression_type)
    try:
        if wanted == codec and codec and max_unpacked_bytes == UNLIMITED:
            payload: Bytes = b""
            status, bad_index, min_timestamp, max_timestamp, null_keys = unpacking.check_packed(
                Codec(codec), body, count, base_timestamp, config.decompression_max_bytes
            )
        else:
            payload = _unpacked(codec, body, config, max_unpacked_bytes) if codec else body
            status, bad_index, min_timestamp, max_timestamp, _, null_keys = kernel.check_records(
                payload, 0, len(payload), count, base_timestamp, True
            )
    except DecompressionLimitError as error:
        raise _unpacked_too_large(error, config) from error
    except CorruptRecordError as error:
        # The CRC is right, so this is what the producer made: to send it again does not help.
        raise InvalidRecordError(str(error)) from error
    if status != kernel.OK:
        raise _explain(status, bad_index, size, size)
    if wanted != codec:
        if len(payload) > max_unpacked_bytes // _PACKED_SHARE:
            raise TakesLongError
        attributes = attributes & ~batch.CODEC_MASK | wanted
        records = _recompress(records, payload, attributes, config)
        size = len(records)
        if size > config.max_message_bytes:
            _refuse_too_large(records, config.max_message_bytes, max_unpacked_bytes)
    return records, size, attributes, min_timestamp, max_timestamp, null_keys


def _unpacked(codec: int, body: memoryview, config: LogConfig, max_unpacked_bytes: int) -> Bytes:
    limit = config.decompression_max_bytes
    if limit <= max_unpacked_bytes:
        return compression.decompress(Codec(codec), body, limit)
    if len(body) > max_unpacked_bytes:
        raise TakesLongError
    try:
        return compression.decompress(Codec(codec), body, max_unpacked_bytes)
    except DecompressionLimitError as error:
        raise TakesLongError from error


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


def _refuse_too_large(records: Bytes, limit: int, max_unpacked_bytes: int) -> None:
    """A batch is measured whole, a set of old messages message by message, without one that is cut off at its end."""
    position = 0
    while position + batch.MAGIC_AT < len(records):
        size = int.from_bytes(records[position + 8 : position + 12], "big", signed=True) + batch.OVERHEAD_SIZE
        if position and position + size > len(records):
            return
        if size > limit:
            raise RecordTooLargeError(f"the batch has {size} bytes; max.message.bytes allows {limit}")
        if size <= batch.MAGIC_AT or records[position + batch.MAGIC_AT] >= batch.MAGIC_V2:
            return
        if max_unpacked_bytes != UNLIMITED:
            raise TakesLongError
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


def _without_key(
    records: Bytes, size: int, count: int, config: LogConfig, max_unpacked_bytes: int
) -> InvalidRecordError:
    """Names the first records that a compacted topic cannot take."""
    if count > _ROWS and max_unpacked_bytes != UNLIMITED:
        raise TakesLongError
    keyless: list[int] = []
    for first, key_sizes in _column(records, size, config, kernel.REC_KEY_SIZE):
        if min(key_sizes) < 0:
            keyless += [first + index for index, key_size in enumerate(key_sizes) if key_size < 0]
        if len(keyless) >= MAX_RECORD_ERRORS:
            break
    message = "a compacted topic cannot accept a record without a key"
    return InvalidRecordError(message, [(index, message) for index in keyless[:MAX_RECORD_ERRORS]])
