"""The header of a v2 batch: its fields, and the changes a leader makes in place."""

from __future__ import annotations

import pytest

from ottla.errors import CorruptRecordError
from ottla.records import kernel
from ottla.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    compute_crc,
    parse_header,
    patch_offsets,
    patch_times,
)
from ottla.records.compression.codec import Codec
from tests.reference import batch, record

FIELDS = {
    "base_offset": 2**40,
    "leader_epoch": 7,
    "attributes": 0x53,
    "last_offset_delta": 4,
    "base_timestamp": 1000,
    "max_timestamp": 2000,
    "producer_id": 2**33,
    "producer_epoch": 12,
    "base_sequence": 2**31 - 1,
    "count": 1,
}


def test_a_header_is_read_field_by_field_at_its_position() -> None:
    data = b"junk" + batch(record(), **FIELDS)
    header = parse_header(data, 4)
    assert {name: getattr(header, name) for name in FIELDS} == FIELDS
    assert header.magic == 2
    assert header.size == header.length + 12 == len(data) - 4
    assert header.last_offset == 2**40 + 4
    assert header.next_offset == 2**40 + 5
    assert header.crc == compute_crc(data, 4, header.size)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0, (Codec.NONE, 0, False, False, False)),
        (3, (Codec.LZ4, 0, False, False, False)),
        (4 | LOG_APPEND_TIME, (Codec.ZSTD, 1, False, False, False)),
        (TRANSACTIONAL | CONTROL, (Codec.NONE, 0, True, True, False)),
        (DELETE_HORIZON, (Codec.NONE, 0, False, False, True)),
    ],
)
def test_attributes_are_named(attributes: int, expected: tuple[object, ...]) -> None:
    header = parse_header(batch(record(), attributes=attributes))
    assert expected == (
        header.codec,
        header.timestamp_type,
        header.is_transactional,
        header.is_control,
        header.has_delete_horizon,
    )


def test_an_unknown_codec_is_corruption() -> None:
    with pytest.raises(CorruptRecordError, match="codec 5"):
        _ = parse_header(batch(record(), attributes=5)).codec


@pytest.mark.parametrize("size", [0, 1, HEADER_SIZE - 1])
def test_a_cut_header_is_corruption(size: int) -> None:
    with pytest.raises(CorruptRecordError, match="cut short"):
        parse_header(batch(record())[:size])


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_another_magic_is_corruption(magic: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"magic {magic}"):
        parse_header(batch(record(), magic=magic))


def test_offset_and_epoch_change_without_a_new_crc() -> None:
    data = bytearray(b"junk") + batch(record(), **FIELDS)
    before = parse_header(data, 4)
    patch_offsets(data, 4, 99, 8)
    assert parse_header(data, 4) == before._replace(base_offset=99, leader_epoch=8)
    assert data[:4] == b"junk"


def test_times_change_with_a_new_crc() -> None:
    data = batch(record(), attributes=TRANSACTIONAL) + b"next"
    size = len(data) - 4
    before = parse_header(data)
    patch_times(data, 0, size, TRANSACTIONAL | LOG_APPEND_TIME, 5555)
    after = parse_header(data)
    assert after == before._replace(
        attributes=TRANSACTIONAL | LOG_APPEND_TIME, max_timestamp=5555, crc=after.crc
    )
    assert kernel.check_batch(data, 0, size)[0] == kernel.OK
    assert data[size:] == b"next"
