"""Building batches and reading their records back, plain and compressed, whole and window by window."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError
from ottla.records.batch import HEADER_SIZE, parse_header
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.record import Record, read_batches, read_records
from tests.reference import batch, record
from tests.strategies import record_lists


def expected(records: list[NewRecord], base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + index, item.timestamp, item.key, item.value, list(item.headers))
        for index, item in enumerate(records)
    ]


@settings(max_examples=50)
@given(record_lists, st.sampled_from(list(Codec)), st.integers(0, 2**60), st.integers(1, 300))
def test_what_is_built_is_read_back(
    records: list[NewRecord], codec: Codec, base_offset: int, window_bytes: int
) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)
    assert list(read_records(data)) == expected(records, base_offset)
    assert list(read_records(b"junk" + data, 4, window_bytes=window_bytes)) == expected(records, base_offset)


def test_a_batch_is_what_the_format_says_byte_by_byte() -> None:
    records = [NewRecord(1000, b"k", b"v"), NewRecord(999, None, b"", [(b"n", None)])]
    by_hand = batch(
        record(0, 0, b"k", b"v") + record(1, -1, None, b"", [(b"n", None)]),
        2,
        leader_epoch=-1,
        max_timestamp=1000,
    )
    assert build_batch(records) == by_hand
    assert build_batch(iter(records)) == by_hand
    assert build_batch([item[:] for item in records]) == by_hand


def test_every_header_field_is_set() -> None:
    data = build_batch(
        [NewRecord(1000, b"k", b"v")], base_offset=5, leader_epoch=6, producer_id=7, producer_epoch=8,
        base_sequence=9, transactional=True, control=True, codec=Codec.ZSTD,
    )  # fmt: skip
    header = parse_header(data)
    assert (header.base_offset, header.leader_epoch, header.producer_id) == (5, 6, 7)
    assert (header.producer_epoch, header.base_sequence, header.count) == (8, 9, 1)
    assert (header.is_transactional, header.is_control, header.codec) == (True, True, Codec.ZSTD)


def test_log_append_time_is_what_readers_see() -> None:
    data = build_batch([NewRecord(1000, b"k", b"v"), NewRecord(3000, b"k", b"v")], log_append_time=2000)
    header = parse_header(data)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (1, 1000, 2000)
    assert [item.timestamp for item in read_records(data)] == [2000, 2000]


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    records = [NewRecord(1000, b"k", None), NewRecord(1500, b"l", b"v")]
    data = build_batch(records, delete_horizon_ms=99_000)
    header = parse_header(data)
    assert (header.has_delete_horizon, header.base_timestamp, header.max_timestamp) == (True, 99_000, 1500)
    assert list(read_records(data)) == expected(records)


def test_sparse_offsets_are_kept_and_the_last_delta_may_lie_past_them() -> None:
    records = [NewRecord(1000, b"k", b"v"), NewRecord(1000, b"l", b"v")]
    data = build_batch(records, base_offset=100, offset_deltas=[2, 5])
    assert parse_header(data).last_offset == 105
    assert [item.offset for item in read_records(data)] == [102, 105]
    data = build_batch(records, base_offset=100, offset_deltas=[2, 5], last_offset_delta=9)
    assert parse_header(data).last_offset == 109
    with pytest.raises(ValueError, match="1 offset deltas for 2 records"):
        build_batch(records, offset_deltas=[1])


def test_an_empty_batch_keeps_its_last_offset() -> None:
    data = build_batch([], base_offset=100, last_offset_delta=4, producer_id=3)
    header = parse_header(data)
    assert (header.count, header.last_offset, header.size) == (0, 104, HEADER_SIZE)
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)
    assert list(read_records(data)) == []


@pytest.mark.parametrize("other", [-2, 2**63 - 1])
def test_timestamps_too_far_apart_are_refused(other: int) -> None:
    first = 2**63 - 1 if other < 0 else -1
    with pytest.raises(ValueError, match="within 2\\^63"):
        build_batch([NewRecord(first, None, None), NewRecord(other, None, None)])


def test_batches_are_listed_with_their_positions() -> None:
    first, second = (
        build_batch([NewRecord(1, b"k", b"v")]),
        build_batch([NewRecord(1, b"k", b"v")], base_offset=1),
    )
    found = list(read_batches(first + second))
    assert [(position, header.base_offset) for position, header in found] == [(0, 0), (len(first), 1)]
    assert list(read_batches(b"")) == []


@pytest.mark.parametrize("cut", [1, 30, 64])
def test_a_log_that_ends_inside_a_batch_is_corruption(cut: int) -> None:
    log = batch(record()) + batch(record())[:cut]
    with pytest.raises(CorruptRecordError, match=f"position {len(batch(record()))}"):
        list(read_batches(log))


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_batch_shorter_than_its_header_is_corruption(length: int) -> None:
    with pytest.raises(CorruptRecordError, match="claims"):
        list(read_batches(batch(record(), length=length)))


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_records_than_the_header_says_is_corruption(codec: Codec, count: int) -> None:
    data = build_batch([NewRecord(1, b"k", b"v")] * 2, codec=codec)
    data[57:61] = count.to_bytes(4, "big")
    with pytest.raises(CorruptRecordError, match=f"2 good records of {count}"):
        list(read_records(data))


@pytest.mark.parametrize("window_bytes", [5, 1000])
def test_a_bad_record_is_corruption_after_the_good_ones(window_bytes: int) -> None:
    data = batch(record(0) + b"\x0c" + b"\xff" * 6 + record(2), 3)
    reader = read_records(data, window_bytes=window_bytes)
    assert next(reader).offset == 0
    with pytest.raises(CorruptRecordError, match="1 good records of 3"):
        next(reader)


def test_a_record_larger_than_many_windows_is_read_whole() -> None:
    records = [NewRecord(1, b"k", bytes(range(256)) * 400), NewRecord(2, b"k", b"v")]
    data = build_batch(records, codec=Codec.GZIP)
    assert list(read_records(data, window_bytes=1000)) == expected(records)


def test_more_records_than_fit_one_call_are_read() -> None:
    records = [NewRecord(1000 + index, b"%d" % index, b"v") for index in range(2_000)]
    assert list(read_records(build_batch(records))) == expected(records)
