"""Transaction markers, and control batches that are none."""

from __future__ import annotations

import struct

import pytest

from ottla.errors import CorruptRecordError
from ottla.records.batch import parse_header
from ottla.records.builder import NewRecord, build_batch
from ottla.records.control import ABORT, COMMIT, Marker, build_marker, control_type, parse_marker
from ottla.records.record import read_records


def control_batch(key: bytes | None, value: bytes | None = struct.pack(">hi", 0, 5)) -> bytearray:
    return build_batch(
        [NewRecord(1000, key, value)], control=True, transactional=True, producer_id=1, producer_epoch=0
    )


@pytest.mark.parametrize("is_abort", [True, False])
def test_a_marker_is_read_back(is_abort: bool) -> None:
    marker = Marker(is_abort, 11)
    data = build_marker(marker, 2**40, 3, 5000, base_offset=70, leader_epoch=9)
    assert parse_marker(b"junk" + data, 4) == marker
    header = parse_header(data)
    assert (header.is_control, header.is_transactional, header.base_sequence, header.count) == (
        True,
        True,
        -1,
        1,
    )
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (2**40, 3, 5000)
    assert (header.base_offset, header.leader_epoch) == (70, 9)


def test_a_marker_is_what_the_format_says() -> None:
    (record,) = read_records(build_marker(Marker(False, 258), 1, 0, 5000))
    assert (record.key, record.value) == (b"\0\0\0\1", b"\0\0\0\0\1\2")
    (record,) = read_records(build_marker(Marker(True, 258), 1, 0, 5000))
    assert record.key == b"\0\0\0\0"
    assert (ABORT, COMMIT) == (0, 1)


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 99, -1])
def test_other_control_types_are_left_alone(kind: int) -> None:
    data = control_batch(struct.pack(">hh", 0, kind), b"whatever it is")
    assert parse_marker(data) is None
    assert control_type(next(read_records(data))) == kind


def test_a_later_version_may_have_more_fields() -> None:
    data = control_batch(struct.pack(">hh", 1, COMMIT) + b"more", struct.pack(">hi", 1, 5) + b"more")
    assert parse_marker(data) == Marker(False, 5)


def test_an_empty_control_batch_holds_no_marker() -> None:
    assert parse_marker(build_batch([], control=True, last_offset_delta=0)) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_broken_key_is_corruption(key: bytes | None) -> None:
    with pytest.raises(CorruptRecordError, match="offset 0"):
        parse_marker(control_batch(key))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_a_broken_value_is_corruption(value: bytes | None) -> None:
    with pytest.raises(CorruptRecordError, match="marker at offset 0"):
        parse_marker(control_batch(b"\0\0\0\0", value))
