"""Checks batches that a follower fetched from its leader. Pure: the leader has set offsets and times already."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from ottla.config import LogConfig
from ottla.errors import CorruptRecordError, UnexpectedAppendOffsetError
from ottla.names import Bytes
from ottla.records import batch, kernel

_SMALLEST_LEGACY = 26


@dataclass(frozen=True, slots=True)
class Fetched:
    """Whole, good batches at the start of what was fetched."""

    rows: array[int]
    count: int
    size: int
    first_offset: int
    last_offset: int
    max_timestamp: int
    epochs: list[tuple[int, int]]  # (leader epoch, offset) wherever it changes


def check(records: Bytes, next_offset: int, config: LogConfig) -> Fetched | None:
    """Every batch is checked in full; a cut one at the end is left for the next fetch. None if nothing is left."""
    smallest = (
        batch.HEADER_SIZE
        if len(records) > batch.MAGIC_AT and records[batch.MAGIC_AT] == 2
        else _SMALLEST_LEGACY
    )
    room = len(records) // smallest + 1
    rows = array("q", bytes(8 * kernel.ROW * room))
    count, size, status = kernel.scan(records, 0, len(records), rows, kernel.CHECK_CRC | kernel.CHECK_RECORDS)
    if status not in (kernel.OK, kernel.TRUNCATED):
        raise CorruptRecordError(
            f"a fetched batch at byte {size} is corrupt: {kernel.STATUS_MEANING[status]}"
        )
    if count == 0:
        return None
    expected, max_timestamp = rows[kernel.BASE_OFFSET], -1
    epochs: list[tuple[int, int]] = []
    for at in range(0, count * kernel.ROW, kernel.ROW):
        base_offset, last_offset = rows[at + kernel.BASE_OFFSET], rows[at + kernel.LAST_OFFSET]
        if base_offset < expected or last_offset < base_offset:
            raise UnexpectedAppendOffsetError(
                f"fetched offsets do not grow: {base_offset} after {expected - 1}"
            )
        expected = last_offset + 1
        max_timestamp = max(max_timestamp, rows[at + kernel.MAX_TIMESTAMP])
        epoch = rows[at + kernel.LEADER_EPOCH]
        if epoch >= 0 and (not epochs or epochs[-1][0] != epoch):
            epochs.append((epoch, base_offset))
    return Fetched(rows, count, size, rows[kernel.BASE_OFFSET], expected - 1, max_timestamp, epochs)
