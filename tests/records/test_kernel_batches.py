"""Walks over batches: rows, checks in their order, lies in headers, damage, and the search for an offset."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.batch import parse_header
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from tests.reference import batch, headers_in, legacy_message, record
from tests.strategies import record_lists

CRC_AND_RECORDS = kernel.CHECK_CRC | kernel.CHECK_RECORDS
CHECK_BATCH_FIELDS = (
    "status", "size", "base_offset", "attributes", "last_offset_delta", "base_timestamp", "max_timestamp",
    "producer_id", "producer_epoch", "base_sequence", "count", "bad_index", "min_ts", "max_ts",
    "max_ts_index", "null_keys",
)  # fmt: skip


def scan(
    data: bytes | bytearray, flags: int = CRC_AND_RECORDS, room: int = 8, **more: int
) -> tuple[list[list[int]], int, int]:
    """All rows (those past the count too), the position after the last good batch, the status."""
    rows = array("q", [-99]) * (kernel.ROW * room)
    count, position, status = kernel.scan(data, 0, len(data), rows, flags, **more)
    split = [rows[at : at + kernel.ROW].tolist() for at in range(0, len(rows), kernel.ROW)]
    assert all(row[0] == -99 for row in split[count + 1 :])
    return split[:count], position, status


def check(data: bytes | bytearray) -> dict[str, int]:
    return dict(zip(CHECK_BATCH_FIELDS, kernel.check_batch(data, 0, len(data)), strict=True))


def test_a_row_holds_every_field_of_a_batch() -> None:
    records = [NewRecord(1000, None, b"a"), NewRecord(1005, b"k", None), NewRecord(1003, None, b"c")]
    data = build_batch(
        records, base_offset=50, leader_epoch=4, producer_id=2**40, producer_epoch=3, base_sequence=9,
        transactional=True,
    )  # fmt: skip
    (row,), position, status = scan(data, shift=10_000)
    assert (position, status) == (len(data), kernel.OK)
    assert row[kernel.POSITION] == 10_000
    assert row[kernel.SIZE] == len(data)
    assert row[kernel.BASE_OFFSET] == 50
    assert row[kernel.LAST_OFFSET] == 52
    assert row[kernel.MAX_TIMESTAMP] == 1005
    assert row[kernel.LEADER_EPOCH] == 4
    assert row[kernel.MAGIC] == 2
    assert row[kernel.ATTRIBUTES] == 0x10
    assert row[kernel.PRODUCER_ID] == 2**40
    assert row[kernel.PRODUCER_EPOCH] == 3
    assert row[kernel.BASE_SEQUENCE] == 9
    assert row[kernel.COUNT] == 3
    assert row[kernel.BASE_TIMESTAMP] == 1000
    assert row[kernel.CRC] == parse_header(data).crc
    assert row[kernel.LAST_DELTA] == 2
    assert row[kernel.NULL_KEYS] == 2
    assert scan(data, kernel.CHECK_CRC)[0][0][kernel.NULL_KEYS] == -1


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_a_row_holds_an_old_message(magic: int, key: bytes | None, value: bytes | None) -> None:
    data = legacy_message(magic, 70, key, value, timestamp=5000)
    (row,), position, status = scan(data)
    assert (position, status) == (len(data), kernel.OK)
    time = 5000 if magic else -1
    crc = struct.unpack_from(">I", data, 12)[0]
    assert row == [0, len(data), 70, 70, time, -1, magic, 0, -1, -1, -1, 1, time, crc, 0, int(key is None)]


def test_an_old_wrapper_has_an_unknown_count() -> None:
    (row,), _, status = scan(legacy_message(1, 70, None, b"packed", timestamp=5000, attributes=1))
    assert (status, row[kernel.COUNT], row[kernel.NULL_KEYS]) == (kernel.OK, -1, -1)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_changed_byte_of_an_old_message_is_seen(magic: int) -> None:
    data = bytearray(legacy_message(magic, 70, b"key", b"value", timestamp=5000))
    for at in range(8, len(data)):
        changed = data.copy()
        changed[at] ^= 0x41
        assert scan(changed)[2] != kernel.OK, at


@pytest.mark.parametrize(
    ("key_size", "value_size"),
    [
        (-2, 5),
        (9, 5),
        (12, 5),
        (13, 5),
        (4, 5),
        (2, 5),
        (3, 4),
        (3, 6),
        (3, -2),
        (2**31 - 1, 5),
        (3, 2**31 - 1),
    ],
)
def test_lengths_in_an_old_message_must_fill_it(key_size: int, value_size: int) -> None:
    data = bytearray(legacy_message(0, 70, b"key", b"value"))
    struct.pack_into(">i", data, 18, key_size)
    struct.pack_into(">i", data, 25, value_size)
    assert scan(data, kernel.CHECK_RECORDS)[2] == kernel.BAD_RECORD
    assert scan(data, 0)[2] == kernel.OK


def test_scan_walks_all_magics_and_stops_when_rows_are_full() -> None:
    log = legacy_message(0, 0, b"k", b"v") + legacy_message(1, 1, b"k", b"v") + batch(record(), base_offset=2)
    rows, position, status = scan(log)
    assert [row[kernel.MAGIC] for row in rows] == [0, 1, 2]
    assert (position, status) == (len(log), kernel.OK)
    rows, position, status = scan(log, room=2)
    assert (len(rows), status) == (2, kernel.OK)
    assert position == rows[1][kernel.POSITION] + rows[1][kernel.SIZE]
    assert scan(log, room=0) == ([], 0, kernel.OK)


def test_a_torn_tail_is_truncated_wherever_it_is_cut() -> None:
    first, second = batch(record()), batch(record(), base_offset=1)
    for cut in range(1, len(second)):
        rows, position, status = scan(first + second[:cut])
        assert (len(rows), position, status) == (1, len(first), kernel.TRUNCATED)
        assert check(second[:cut])["status"] == kernel.TRUNCATED


TWO = record(0) + record(1)
LIES: list[tuple[int, dict[str, Any]]] = [
    (kernel.BAD_LENGTH, {"length": -1}),
    (kernel.BAD_LENGTH, {"length": 0}),
    (kernel.BAD_LENGTH, {"length": 13}),
    (kernel.BAD_LENGTH, {"length": 48}),
    (kernel.BAD_LENGTH, {"length": -(2**31)}),
    (kernel.TRUNCATED, {"length": 49 + len(TWO) + 1}),
    (kernel.TRUNCATED, {"length": 2**31 - 1}),
    (kernel.BAD_MAGIC, {"magic": 3}),
    (kernel.BAD_MAGIC, {"magic": -1}),
    (kernel.BAD_CRC, {"crc": 0}),
    (kernel.BAD_ATTRIBUTES, {"attributes": 5}),
    (kernel.BAD_ATTRIBUTES, {"attributes": 7}),
    (kernel.BAD_COUNT, {"count": -1}),
    (kernel.BAD_COUNT, {"count": 3}),
    (kernel.BAD_COUNT, {"count": -(2**31)}),
    (kernel.BAD_COUNT, {"count": 2**31 - 1}),
    (kernel.BAD_COUNT, {"last_offset_delta": 0}),
    (kernel.BAD_COUNT, {"last_offset_delta": -1}),
    (kernel.BAD_OFFSETS, {"base_offset": -1}),
    (kernel.BAD_OFFSETS, {"base_offset": -(2**63)}),
    (kernel.BAD_OFFSETS, {"base_offset": 2**63 - 1}),
    (kernel.BAD_OFFSETS, {"base_offset": 2**63 - 2}),
]


@pytest.mark.parametrize(("status", "lie"), LIES, ids=str)
def test_a_lie_in_the_header_is_named(status: int, lie: dict[str, Any]) -> None:
    data = batch(TWO, 2, **lie)
    assert scan(data)[1:] == (0, status)
    assert scan(data, 0)[2] == (kernel.OK if status == kernel.BAD_CRC else status)
    assert check(data)["status"] == status


def test_the_largest_offset_leaves_room_for_the_next() -> None:
    data = batch(TWO, 2, base_offset=2**63 - 3)
    assert scan(data)[0][0][kernel.LAST_OFFSET] == 2**63 - 2
    assert check(data)["status"] == kernel.OK


def test_the_header_of_a_bad_batch_is_still_written() -> None:
    data = batch(TWO, 2, base_offset=33, crc=1)
    rows = array("q", [0]) * kernel.ROW
    assert kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC) == (0, 0, kernel.BAD_CRC)
    assert (rows[kernel.BASE_OFFSET], rows[kernel.COUNT], rows[kernel.SIZE]) == (33, 2, len(data))


def test_compacted_batches_are_good_in_a_log_but_not_from_a_producer() -> None:
    sparse = batch(record(1) + record(4), 2, last_offset_delta=6)
    empty = batch(b"", 0, last_offset_delta=3)
    for data in (sparse, empty):
        assert scan(data)[2] == kernel.OK
        assert check(data)["status"] == kernel.BAD_COUNT
    assert scan(batch(record(1) + record(4), 2, last_offset_delta=3))[2] == kernel.BAD_OFFSETS
    assert scan(batch(record(), 0))[2] == kernel.BAD_COUNT


def test_no_records_and_no_offsets_are_no_batch() -> None:
    data = batch(b"", 0, last_offset_delta=-1)
    assert scan(data)[2] == kernel.BAD_OFFSETS
    assert check(data)["status"] == kernel.BAD_COUNT


def test_records_are_looked_at_only_if_asked() -> None:
    data = batch(b"\xff" * 20, 1)
    assert scan(data, 0)[2] == kernel.OK
    assert scan(data, kernel.CHECK_CRC)[2] == kernel.OK
    assert scan(data, kernel.CHECK_RECORDS)[2] == kernel.BAD_RECORD
    data[30] ^= 1
    assert scan(data, kernel.CHECK_RECORDS)[2] == kernel.BAD_RECORD
    assert scan(data, kernel.CHECK_CRC)[2] == kernel.BAD_CRC


def test_check_batch_names_the_bad_record() -> None:
    assert check(batch(record(0) + record(1)[:-1] + b"\7", 2))["bad_index"] == 1
    found = check(batch(record(0) + record(2), 2))
    assert (found["status"], found["bad_index"]) == (kernel.BAD_OFFSETS, 1)


def test_check_batch_leaves_compressed_records_alone() -> None:
    found = check(build_batch([NewRecord(1000, None, b"v")], codec=Codec.GZIP))
    assert (found["status"], found["attributes"], found["count"]) == (kernel.OK, 1, 1)
    assert [found[name] for name in CHECK_BATCH_FIELDS[-5:]] == [-1, -1, -1, -1, 0]


@pytest.mark.parametrize("magic", [0, 1])
def test_check_batch_refuses_old_messages(magic: int) -> None:
    assert check(legacy_message(magic, 0, b"k", b"v" * 100))["status"] == kernel.BAD_MAGIC


def test_every_changed_byte_past_the_crc_field_is_seen() -> None:
    data = build_batch([NewRecord(1000, b"key", b"value", [(b"name", b"data")]), NewRecord(1001, None, b"")])
    for at in range(16, len(data)):
        for change in (0x01, 0x80, 0xFF):
            changed = data.copy()
            changed[at] ^= change
            assert scan(changed, kernel.CHECK_CRC)[2] != kernel.OK, (at, change)
            assert check(changed)["status"] != kernel.OK, (at, change)


@settings(max_examples=40)
@given(record_lists, st.sampled_from(list(Codec)), st.integers(0, 2**50))
def test_what_is_built_passes_every_check(records: list[NewRecord], codec: Codec, base_offset: int) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)
    (row,), position, status = scan(data)
    assert (position, status) == (len(data), kernel.OK)
    header = parse_header(data)
    found = check(data)
    assert found["status"] == kernel.OK
    for name in (
        "size",
        "base_offset",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "count",
    ):
        assert found[name] == getattr(header, name)
    assert row[kernel.LAST_OFFSET] == header.last_offset == base_offset + len(records) - 1
    if codec is Codec.NONE:
        assert found["null_keys"] == row[kernel.NULL_KEYS] == sum(item.key is None for item in records)


LOG = b"".join(
    bytes(batch(record(), base_offset=base, last_offset_delta=delta))
    for base, delta in [(10, 0), (11, 3), (20, 5), (40, 0), (41, 10)]
)


def naive_find(end: int, offset: int) -> tuple[int, ...]:
    for header in headers_in(LOG):
        last = header["base_offset"] + header["last_offset_delta"]
        if header["position"] >= end or end - header["position"] < 27:
            return (kernel.TRUNCATED, header["position"])
        if last >= offset:
            return (kernel.OK, header["position"], header["size"], header["base_offset"], last)
    return (kernel.TRUNCATED, len(LOG))


def test_find_batch_agrees_with_a_plain_search_wherever_the_log_ends() -> None:
    for end in range(len(LOG) + 1):
        for offset in (-1, 0, 10, 11, 14, 15, 19, 20, 25, 26, 40, 41, 51, 52, 2**63 - 1):
            expected = naive_find(end, offset)
            assert kernel.find_batch(LOG, 0, end, offset)[: len(expected)] == expected


def test_find_batch_begins_where_it_is_told() -> None:
    third = headers_in(LOG)[2]["position"]
    assert kernel.find_batch(LOG, third, len(LOG), 0)[:2] == (kernel.OK, third)


def test_find_batch_walks_old_messages_and_needs_no_body() -> None:
    log = legacy_message(0, 5, None, None) + legacy_message(1, 6, b"k", b"v")
    assert kernel.find_batch(log, 0, len(log), 6) == (kernel.OK, 26, len(log) - 26, 6, 6)
    assert kernel.find_batch(log, 0, 26 + 17, 6)[0] == kernel.OK
    assert kernel.find_batch(log, 0, 26 + 16, 6)[:2] == (kernel.TRUNCATED, 26)
    assert kernel.find_batch(log, 0, 26 + 17, 7)[:2] == (kernel.TRUNCATED, len(log))


@pytest.mark.parametrize(
    ("status", "lie"),
    [item for item in LIES if item[0] in (kernel.BAD_LENGTH, kernel.BAD_MAGIC, kernel.BAD_OFFSETS)]
    + [(kernel.BAD_OFFSETS, {"last_offset_delta": -1})],
    ids=str,
)
def test_find_batch_stops_at_a_header_that_makes_no_sense(status: int, lie: dict[str, Any]) -> None:
    log = batch(record()) + batch(TWO, 2, **{"base_offset": 1} | lie)
    assert kernel.find_batch(log, 0, len(log), 5)[:2] == (status, len(batch(record())))
