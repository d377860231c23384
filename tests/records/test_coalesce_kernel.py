"""Batches that are coalesced are those that validation takes as they are, with the same bytes in the end."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config import LogConfig
from ottla.errors import BrokerError
from ottla.records import batch, coalesce_kernel, kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.storage.log import validation

NOW_MS = 5_000
CONFIG = LogConfig()
GAP = b"\xff" * 7  # between batches, as there are requests


def good(count: int = 1, timestamp: int = NOW_MS, key: bytes | None = b"k", **fields: Any) -> bytes:
    return bytes(build_batch([NewRecord(timestamp + n, key, b"v" * 20) for n in range(count)], **fields))


def with_max_timestamp(data: bytes, timestamp: int) -> bytes:
    changed = bytearray(data)
    batch.patch_times(changed, 0, len(changed), 0, timestamp)
    return bytes(changed)


def coalesce(
    batches: Sequence[bytes | bytearray],
    *,
    keys_needed: bool = False,
    room: int = 1 << 16,
    max_size: int = 1 << 20,
) -> tuple[tuple[int, ...], bytes, array[int]]:
    received = bytearray(GAP)
    places = array("q")
    for data in batches:
        places.extend((1, len(received), len(data), 0))
        received += data + GAP
    before = bytes(received)
    out = bytearray(room)
    rows = array("q", bytes(8 * kernel.ROW * len(batches)))
    found = coalesce_kernel.coalesce(received, places, len(batches), 100, 3, max_size, keys_needed, out, rows)
    assert received == before
    return found, bytes(out[: found[1]]), rows


def test_batches_lie_side_by_side_with_offsets_and_epoch() -> None:
    first, second = good(3), good(2, timestamp=NOW_MS + 50)
    (count, size, last_offset, earliest, latest, latest_offset), data, rows = coalesce([first, second, first])
    assert (count, size) == (3, 2 * len(first) + len(second))
    assert (last_offset, earliest, latest, latest_offset) == (107, NOW_MS, NOW_MS + 51, 104)
    scanned = array("q", bytes(8 * kernel.ROW * 3))
    assert kernel.scan(data, 0, size, scanned, kernel.CHECK_CRC | kernel.CHECK_RECORDS) == (
        3,
        size,
        kernel.OK,
    )
    assert rows == scanned
    assert scanned[kernel.BASE_OFFSET :: kernel.ROW].tolist() == [100, 103, 105]
    assert scanned[kernel.LEADER_EPOCH :: kernel.ROW].tolist() == [3, 3, 3]


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "special",
    [
        damaged(good(), 70), damaged(good(), 18), damaged(good(), 8), damaged(good(), 16),
        good()[:-1], good() + b"\x00",
        good(base_offset=1), good(codec=Codec.GZIP), good(transactional=True, producer_id=1),
        good(control=True), good(log_append_time=NOW_MS), good(key=None),
        with_max_timestamp(good(), NOW_MS + 1), good(producer_id=1), good(producer_id=1, base_sequence=-1), b"",
        good(producer_id=1, base_sequence=2**31 - 1, count=2), good(50),
    ],
)  # fmt: skip
def test_gathering_ends_at_a_batch_that_is_special(special: bytes) -> None:
    found, data, _ = coalesce([good(), special, good()], keys_needed=True, max_size=1000)
    assert found[:3] == (1, len(good()), 100)
    assert len(data) == len(good())


def test_gathering_ends_where_there_is_no_room_left() -> None:
    size = len(good())
    assert coalesce([good()] * 3, room=3 * size)[0][0] == 3
    assert coalesce([good()] * 3, room=3 * size - 1)[0][0] == 2


def test_sequences_of_one_producer_follow_each_other() -> None:
    def of(producer_id: int, epoch: int, sequence: int, count: int) -> bytes:
        return good(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    start = of(1, 0, 7, 2)
    assert coalesce([start, of(1, 0, 9, 1), of(1, 0, 10, 3)])[0][0] == 3
    for other in (of(1, 0, 10, 1), of(1, 0, 7, 2), of(1, 1, 9, 1), of(2, 0, 9, 1), good()):
        assert coalesce([start, other])[0][0] == 1


def test_places_and_rows_must_be_there() -> None:
    rows = array("q", bytes(8 * kernel.ROW))
    with pytest.raises(ValueError, match="too short"):
        coalesce_kernel.coalesce(b"", array("q", [0, 0, 0, 0]), 2, 0, 0, 100, False, bytearray(10), rows)
    # A place outside of the buffer is special.
    for at, size in ((0, 100), (-1, 70), (80, 61), (2**62, 2**62)):
        place = array("q", [0, at, size, 0])
        assert coalesce_kernel.coalesce(b"x" * 90, place, 1, 0, 0, 2**62, False, bytearray(200), rows)[0] == 0


@given(data=st.data())
def test_what_is_gathered_is_what_validation_makes_of_it(data: st.DataObject) -> None:
    batches = []
    for _ in range(data.draw(st.integers(1, 4))):
        made = bytearray(good(data.draw(st.integers(1, 3)), data.draw(st.integers(0, 9_000))))
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(made) - 1))
            made[at] ^= data.draw(st.integers(0, 255))
            # Mostly with a good checksum, so that something else is found.
            if data.draw(st.integers(0, 3)) and at > batch.CRC_AT + 3:
                made[batch.CRC_AT : batch.ATTRIBUTES_AT] = kernel.checksum(
                    made[batch.ATTRIBUTES_AT :]
                ).to_bytes(4)
        batches.append(made)
    (count, size, *_), coalesced, _ = coalesce(batches)
    expected, next_offset = bytearray(), 100
    for number, made in enumerate(batches):
        try:
            checked = validation.validate(bytearray(made), next_offset, 3, CONFIG, NOW_MS)
        except BrokerError:
            assert count <= number
            break
        if number == count:
            # Left to validation, because it had to change more than offset and epoch, or to keep more than the batch.
            assert bytes(checked.data) != made[:8] + bytes(checked.data)[8:16] + made[16:] or (
                checked.attributes or checked.producer_id >= 0
            )
            break
        expected += bytes(checked.data)
        next_offset = checked.last_offset + 1
    assert coalesced == expected[:size]
    assert len(expected) >= size
