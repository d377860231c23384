"""Builds v2 batches: what converters, coordinators, tools and tests write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.records import kernel
from ottla.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MAGIC_V2,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD_SIZE,
    TRANSACTIONAL,
    write_crc,
)
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress


class NewRecord(NamedTuple):
    """A record that has no offset yet. A plain tuple of these four does as well."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def build_batch(
    records: Iterable[tuple[int, bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    delete_horizon_ms: int | None = None,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
) -> bytearray:
    """A whole batch, CRC and all.

    A log append time replaces the producer's timestamps. A delete horizon is stored as the base timestamp,
    which changes no record's. Offset deltas are 0, 1, 2, ... unless given; the last one may lie past the
    last record, as it does after compaction.
    """
    records = records if isinstance(records, list) else list(records)
    if offset_deltas is not None and len(offset_deltas) != len(records):
        raise ValueError(f"{len(offset_deltas)} offset deltas for {len(records)} records")
    timestamps = [record[0] for record in records] or [NO_TIMESTAMP]
    base_timestamp = timestamps[0] if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = max(timestamps)
    if max_timestamp - base_timestamp >= 1 << 63 or min(timestamps) - base_timestamp < -(1 << 63):
        raise ValueError("the timestamps of one batch must lie within 2^63 milliseconds of its first")
    if last_offset_delta is None:
        last_offset_delta = max(0, len(records) - 1) if not offset_deltas else offset_deltas[-1]

    batch = bytearray(HEADER_SIZE)
    kernel.encode_records(batch, records, base_timestamp, offset_deltas)
    flags = (
        (LOG_APPEND_TIME if log_append_time is not None else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    _finish(
        batch, len(records), codec, flags, base_offset, leader_epoch, last_offset_delta, base_timestamp,
        max_timestamp if log_append_time is None else log_append_time, producer_id, producer_epoch,
        base_sequence,
    )  # fmt: skip
    return batch


def seal_batch(
    batch: bytearray,
    count: int,
    timestamp: int,
    *,
    codec: Codec = Codec.NONE,
    latest_time: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> None:
    """Write the header of a batch that has room for it and, behind that, records with offsets 0, 1, 2, ...

    All of them are of one time unless the latest one is given. The records are compressed here.
    """
    flags = TRANSACTIONAL if transactional else 0
    _finish(
        batch, count, codec, flags, 0, NO_EPOCH, count - 1, timestamp,
        timestamp if latest_time is None else latest_time, producer_id,
        producer_epoch, base_sequence,
    )  # fmt: skip


def _finish(
    batch: bytearray, count: int, codec: Codec, flags: int, base_offset: int, leader_epoch: int,
    last_offset_delta: int, base_timestamp: int, max_timestamp: int, producer_id: int, producer_epoch: int,
    base_sequence: int,
) -> None:  # fmt: skip
    if codec is not Codec.NONE:
        packed = compress(codec, memoryview(batch)[HEADER_SIZE:])
        batch[HEADER_SIZE:] = packed
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - OVERHEAD_SIZE, leader_epoch, MAGIC_V2, 0, codec | flags,
        last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    write_crc(batch, 0, len(batch))
