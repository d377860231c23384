"""One record at a time: which bytes are a record, and which lies about lengths and numbers are seen."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.builder import NewRecord
from tests.reference import field, record, sized, varint
from tests.strategies import record_lists

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


def check(records: bytes, count: int = 1, base_timestamp: int = 1000, dense: bool = True) -> tuple[int, ...]:
    return kernel.check_records(records, 0, len(records), count, base_timestamp, dense)


def locate(
    records: bytes, room: int = 8, base_offset: int = 0, base_timestamp: int = 0
) -> tuple[list[list[int]], int, int]:
    rows = array("q", bytes(8 * kernel.REC_ROW * room))
    count, position, status = kernel.decode(records, 0, len(records), base_offset, base_timestamp, rows)
    size = kernel.REC_ROW
    return [rows[i * size : (i + 1) * size].tolist() for i in range(count)], position, status


def with_field_bytes(
    offset_delta: bytes = b"\0", time_delta: bytes = b"\0", rest: bytes = b"\1\1\0"
) -> bytes:
    """A record whose numbers are given as raw bytes; `rest` is null key, null value, no headers."""
    return sized(b"\0" + time_delta + offset_delta + rest)


def test_timestamps_extremes_and_null_keys_are_reported() -> None:
    records = record(0, 5, None) + record(1, -7) + record(2, 9, None) + record(3, 9)
    assert check(records, 4) == (kernel.OK, -1, 993, 1009, 2, 2)


def test_no_records_in_no_bytes_are_good() -> None:
    assert check(b"", 0) == (kernel.OK, -1, -1, -1, -1, 0)


@pytest.mark.parametrize(("count", "status"), [(1, kernel.BAD_COUNT), (2, kernel.OK), (3, kernel.BAD_COUNT)])
def test_the_count_must_be_exact(count: int, status: int) -> None:
    assert check(record(0) + record(1), count)[:2] == (status, -1)


@pytest.mark.parametrize("count", [-1, INT64_MIN])
def test_a_negative_count_is_refused(count: int) -> None:
    assert check(record(0), count)[0] == kernel.BAD_COUNT
    assert check(b"", count)[0] == kernel.BAD_COUNT


@pytest.mark.parametrize(
    ("deltas", "dense", "bad"),
    [
        ((0, 1, 2), True, -1),
        ((0, 2), True, 1),
        ((1,), True, 0),
        ((0, 0), True, 1),
        ((-1,), True, 0),
        ((0, 3, 9), False, -1),
        ((4,), False, -1),
        ((3, 3), False, 1),
        ((3, 2), False, 1),
        ((-1,), False, 0),
    ],
)
def test_offset_deltas_are_dense_or_at_least_grow(deltas: tuple[int, ...], dense: bool, bad: int) -> None:
    result = check(b"".join(record(delta) for delta in deltas), len(deltas), dense=dense)
    assert result[:2] == (kernel.OK if bad < 0 else kernel.BAD_OFFSETS, bad)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x00", 0),
        (b"\x7f", -64),
        (b"\x80\x01", 64),
        (b"\xff\x7f", -8192),
        (b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        (b"\xff\xff\xff\xff\x0f", -(2**31)),
        (b"\x80\x00", 0),  # longer than it needs to be, which Kafka accepts too
        (b"\x82\x80\x80\x80\x00", 1),
    ],
)
def test_a_32_bit_varint_has_up_to_five_bytes(raw: bytes, value: int) -> None:
    rows, _, status = locate(with_field_bytes(offset_delta=raw), base_offset=2**40)
    assert (status, rows[0][kernel.REC_OFFSET]) == (kernel.OK, 2**40 + value)


@pytest.mark.parametrize(
    "raw", [b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x00", b"\xff" * 12]
)
def test_a_32_bit_varint_that_is_too_long_or_too_big_is_bad(raw: bytes) -> None:
    assert locate(with_field_bytes(offset_delta=raw))[2] == kernel.BAD_RECORD
    assert check(with_field_bytes(offset_delta=raw))[:2] == (kernel.BAD_RECORD, 0)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x01", -1),
        (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", INT64_MAX),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", INT64_MIN),
        (b"\x82" + b"\x80" * 8 + b"\x00", 1),
    ],
)
def test_a_64_bit_varint_has_up_to_ten_bytes(raw: bytes, value: int) -> None:
    rows, _, status = locate(with_field_bytes(time_delta=raw))
    assert (status, rows[0][kernel.REC_TIMESTAMP]) == (kernel.OK, value)
    assert check(with_field_bytes(time_delta=raw), base_timestamp=0)[2:4] == (value, value)


@pytest.mark.parametrize(
    "raw", [b"\x80" * 9 + b"\x02", b"\x80" * 10 + b"\x00", b"\xff" * 9 + b"\x7f", b"\xff" * 20]
)
def test_a_64_bit_varint_that_is_too_long_or_too_big_is_bad(raw: bytes) -> None:
    assert locate(with_field_bytes(time_delta=raw))[2] == kernel.BAD_RECORD
    assert check(with_field_bytes(time_delta=raw))[:2] == (kernel.BAD_RECORD, 0)


@pytest.mark.parametrize(
    ("base", "delta", "status"),
    [
        (INT64_MAX, 0, kernel.OK),
        (INT64_MAX, 1, kernel.BAD_RECORD),
        (INT64_MAX - 5, 5, kernel.OK),
        (-1, INT64_MAX, kernel.OK),
        (1, INT64_MAX, kernel.BAD_RECORD),
        (INT64_MIN, -1, kernel.BAD_RECORD),
        (0, INT64_MIN, kernel.OK),
        (-1, INT64_MIN, kernel.BAD_RECORD),
        (INT64_MAX, INT64_MIN, kernel.OK),
        (INT64_MIN, INT64_MAX, kernel.OK),
    ],
)
def test_a_timestamp_out_of_64_bits_is_bad(base: int, delta: int, status: int) -> None:
    data = record(0, delta)
    assert check(data, base_timestamp=base)[0] == status
    assert locate(data, base_timestamp=base)[2] == status
    if status == kernel.OK:
        assert check(data, base_timestamp=base)[2] == base + delta


def test_an_offset_out_of_64_bits_is_bad() -> None:
    assert locate(record(1), base_offset=INT64_MAX)[2] == kernel.BAD_RECORD
    assert locate(record(1), base_offset=INT64_MAX - 1)[2] == kernel.OK
    assert locate(record(-1), base_offset=INT64_MIN)[2] == kernel.BAD_RECORD


NO_HEADERS = varint(0)
HEADER = field(b"name") + field(b"data")


@pytest.mark.parametrize(
    "rest",
    [
        varint(-2) + field(b"v") + NO_HEADERS,
        field(b"k") + varint(-2) + NO_HEADERS,
        varint(2) + b"k",
        varint(1000) + b"k" + field(b"v") + NO_HEADERS,
        field(b"k") + varint(1000) + b"v" + NO_HEADERS,
        varint(2**31 - 1) + field(b"v") + NO_HEADERS,
        field(b"k") + field(b"v"),
        field(b"k") + field(b"v") + varint(-1),
        field(b"k") + field(b"v") + varint(1),
        field(b"k") + field(b"v") + varint(2) + HEADER,
        field(b"k") + field(b"v") + varint(2**31 - 1) + HEADER,
        field(b"k") + field(b"v") + varint(1) + varint(-1) + field(b"data"),
        field(b"k") + field(b"v") + varint(1) + field(b"name"),
        field(b"k") + field(b"v") + varint(1) + field(b"name") + varint(-2),
        field(b"k") + field(b"v") + varint(1) + field(b"name") + varint(9) + b"data",
        field(b"k") + field(b"v") + NO_HEADERS + b"\0",
        field(b"k") + field(b"v") + varint(1) + HEADER + b"\0",
    ],
)
def test_fields_must_fill_the_record_exactly(rest: bytes) -> None:
    data = with_field_bytes(rest=rest)
    assert check(data)[:2] == (kernel.BAD_RECORD, 0)
    # A good record on either side must not be taken for a part of the bad one.
    assert check(record(0) + data + record(2), 3)[:2] == (kernel.BAD_RECORD, 1)
    assert locate(data) == ([], 0, kernel.BAD_RECORD)


@pytest.mark.parametrize(
    "rest",
    [
        varint(-1) + varint(-1) + NO_HEADERS,
        field(b"") + field(b"") + NO_HEADERS,
        field(b"k") + field(b"v") + varint(2) + HEADER + field(b"") + varint(-1),
    ],
)
def test_null_and_empty_fields_are_good(rest: bytes) -> None:
    assert check(with_field_bytes(rest=rest))[0] == kernel.OK


@pytest.mark.parametrize("size", range(7))
def test_a_record_too_short_for_its_fields_is_bad(size: int) -> None:
    body = b"\0\0\0\1\1\0"  # the shortest record there is
    assert check(sized(body[:size]))[0] == (kernel.OK if size == len(body) else kernel.BAD_RECORD)


@pytest.mark.parametrize("size", [-1, -(2**31), -7])
def test_a_record_of_negative_length_is_bad(size: int) -> None:
    data = varint(size) + record(0)[1:]
    assert check(data)[:2] == (kernel.BAD_RECORD, 0)
    assert locate(data)[2] == kernel.BAD_RECORD


def test_a_cut_record_is_bad_in_a_batch_and_truncated_in_a_window() -> None:
    data = record(0) + record(1, 0, b"k" * 100)
    whole = len(record(0))
    for end in range(whole + 1, len(data)):
        assert check(data[:end], 2)[:2] == (kernel.BAD_RECORD, 1)
        rows, position, status = locate(data[:end])
        assert (len(rows), position, status) == (1, whole, kernel.TRUNCATED)


def test_nothing_at_or_past_the_end_is_read() -> None:
    data = record(0) + record(1)
    end = len(record(0))
    assert kernel.check_records(data, 0, end, 1, 0, True)[0] == kernel.OK
    assert kernel.check_records(data, 0, end - 1, 1, 0, True)[0] == kernel.BAD_RECORD


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (1, 0), (0, 99), (99, 99)])
def test_a_range_outside_the_buffer_is_the_callers_mistake(start: int, end: int) -> None:
    data, rows = record(0), array("q", bytes(8 * kernel.ROW))
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.check_records(data, start, end, 1, 0, True)
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.decode(data, start, end, 0, 0, rows)
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.headers(data, start, end, 1)
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.scan(data, start, end, rows, 0)
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.check_batch(data, start, end)
    with pytest.raises(ValueError, match="does not lie within"):
        kernel.find_batch(data, start, end, 0)


def test_decode_goes_on_where_the_rows_were_full() -> None:
    data = b"".join(record(index, index, b"key%d" % index) for index in range(5))
    rows, position, status = locate(data, room=3)
    assert (len(rows), status) == (3, kernel.OK)
    assert [row[kernel.REC_OFFSET] for row in locate(data[position:])[0]] == [3, 4]


def test_headers_of_something_else_are_refused() -> None:
    for data in (b"", varint(-1) + field(b"x"), field(b"name"), b"\xff" * 20):
        with pytest.raises(ValueError, match="not the headers"):
            kernel.headers(data, 0, len(data), 1)


@settings(max_examples=60)
@given(record_lists)
def test_what_is_encoded_is_located_again(records: list[NewRecord]) -> None:
    base = records[0].timestamp
    encoded = bytearray()
    kernel.encode_records(encoded, records, base, None)
    by_hand = b"".join(
        record(index, item.timestamp - base, item.key, item.value, item.headers)
        for index, item in enumerate(records)
    )
    assert encoded == by_hand
    rows, position, status = locate(bytes(encoded), base_offset=70, base_timestamp=base)
    assert (position, status) == (len(encoded), kernel.OK)
    view = bytes(encoded)
    for index, (row, item) in enumerate(zip(rows, records, strict=True)):
        offset, timestamp, key, key_size, value, value_size, headers, header_count, _, end = row
        assert (offset, timestamp) == (70 + index, item.timestamp)
        assert (None if key_size < 0 else view[key : key + key_size]) == item.key
        assert (None if value_size < 0 else view[value : value + value_size]) == item.value
        assert kernel.headers(view, headers, end, header_count) == list(item.headers)
    status, bad, least, most, most_index, null_keys = check(view, len(records), base)
    times = [item.timestamp for item in records]
    assert (status, bad, least, most) == (kernel.OK, -1, min(times), max(times))
    assert (most_index, null_keys) == (times.index(max(times)), sum(item.key is None for item in records))


@settings(max_examples=60)
@given(st.binary(max_size=60), st.integers(0, 3))
def test_any_bytes_get_a_status(data: bytes, count: int) -> None:
    assert check(data, count)[0] in (kernel.OK, kernel.BAD_COUNT, kernel.BAD_OFFSETS, kernel.BAD_RECORD)
    assert locate(data)[2] in (kernel.OK, kernel.TRUNCATED, kernel.BAD_RECORD)
