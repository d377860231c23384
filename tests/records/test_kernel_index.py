"""Lookups in index entries, and what scanned rows mean to indexes, producers and epochs."""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.control import Marker, build_marker


def rows_of(*batches: dict[int, int]) -> array[int]:
    """Rows with the given columns; the rest as of a plain batch of 100 bytes with one record."""
    rows: array[int] = array("q")
    for number, columns in enumerate(batches):
        row = [number * 100, 100, number, number, 1000, 0, 2, 0, -1, -1, -1, 1, 1000, 0, 0, 0]
        for column, value in columns.items():
            row[column] = value
        rows.extend(row)
    return rows


def naive_floor(keys: list[int], target: int) -> int:
    return max((slot for slot, key in enumerate(keys) if key <= target), default=-1)


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from([(8, ">ii", 31), (12, ">qi", 63)]),
    st.sampled_from([0, 1, 5, 340, 341, 512, 513, 700]),
)
def test_index_floor_agrees_with_a_plain_search(
    data: st.DataObject, form: tuple[int, str, int], entries: int
) -> None:
    entry_size, layout, bits = form
    step = data.draw(st.sampled_from([0, 1, 3, 1000]))
    first = data.draw(st.sampled_from([0, 5, -(2**bits), 2**bits - 1 - step * entries]))
    keys = [first + step * slot for slot in range(entries)]
    buf = b"".join(struct.pack(layout, key, 7) for key in keys) + b"\xff" * data.draw(st.integers(0, 20))
    near = [key + shift for key in (keys[:2] + keys[-2:]) for shift in (-1, 0, 1) if abs(key + shift) < 2**63]
    for target in [*near, 0, -(2**63), 2**63 - 1, first + step * (entries // 2)]:
        assert kernel.index_floor(buf, entries, entry_size, target) == naive_floor(keys, target)


@pytest.mark.parametrize(("entries", "entry_size"), [(3, 8), (-1, 8), (2, 12), (1, 4), (1, 0), (2**62, 8)])
def test_index_floor_refuses_entries_that_are_not_there(entries: int, entry_size: int) -> None:
    with pytest.raises(ValueError, match="entries"):
        kernel.index_floor(bytes(16), entries, entry_size, 0)


def new_state() -> array[int]:
    return array("q", [0, -1, -1, -1, -1, -1, 0, 0])


def naive_index(batches: list[dict[int, int]], base: int, interval: int) -> tuple[list[Any], list[Any]]:
    """As Kafka's segment does it, batch by batch."""
    offsets: list[Any] = []
    times: list[Any] = []
    unindexed, largest, largest_offset = 0, -1, -1
    for number, columns in enumerate(batches):
        last, time, size = columns[kernel.LAST_OFFSET], columns[kernel.MAX_TIMESTAMP], columns[kernel.SIZE]
        if time > largest:
            largest, largest_offset = time, last
        if unindexed > interval:
            offsets.append((last - base, number * 100))
            if largest > (times[-1][0] if times else -1):
                times.append((largest, largest_offset - base))
            unindexed = 0
        unindexed += size
    return offsets, times


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 50), st.integers(61, 300)), max_size=20),
    st.integers(0, 500),
    st.integers(0, 20),
)
def test_sparse_entries_are_those_kafka_writes(
    steps: list[tuple[int, int, int]], interval: int, cut: int
) -> None:
    base, last, batches = 1000, 999, []
    for step, time, size in steps:
        last += step
        batches.append({kernel.LAST_OFFSET: last, kernel.MAX_TIMESTAMP: time, kernel.SIZE: size})
    rows, state = rows_of(*batches), new_state()
    offset_entries, time_entries = bytearray(), bytearray()
    cut = min(cut, len(batches))
    for part in (rows[: cut * kernel.ROW], rows[cut * kernel.ROW :]):  # state carries over from call to call
        count = len(part) // kernel.ROW
        assert (
            kernel.index_rows(part, count, base, interval, state, offset_entries, time_entries) == kernel.OK
        )
        assert state[6] == count
    offsets, times = naive_index(batches, base, interval)
    assert list(struct.iter_unpack(">ii", offset_entries)) == offsets
    assert list(struct.iter_unpack(">qi", time_entries)) == times
    assert state[3] == (offsets[-1][0] + base if offsets else -1)
    assert (state[4], state[5]) == ((times[-1][0], times[-1][1] + base) if times else (-1, -1))


@pytest.mark.parametrize("offset", [999, -1, 1000 + 2**31, 2**63 - 1])
def test_an_offset_that_does_not_fit_the_segment_stops_indexing(offset: int) -> None:
    rows, state = rows_of({kernel.LAST_OFFSET: 1000}, {kernel.LAST_OFFSET: offset}), new_state()
    assert kernel.index_rows(rows, 2, 1000, 0, state, bytearray(), bytearray()) == kernel.BAD_OFFSETS
    assert state[6] == 1


def test_the_last_offset_that_fits_is_indexed() -> None:
    rows, entries = rows_of({}, {kernel.LAST_OFFSET: 2**31 - 1}), bytearray()
    assert kernel.index_rows(rows, 2, 0, 0, new_state(), entries, bytearray()) == kernel.OK
    assert entries == struct.pack(">ii", 2**31 - 1, 100)


@pytest.mark.parametrize("columns", [{kernel.LAST_OFFSET: 0}, {kernel.POSITION: 2**31}])
def test_an_entry_that_cannot_be_written_stops_indexing(columns: dict[int, int]) -> None:
    state = new_state()
    state[0], state[3] = 1, 0
    assert kernel.index_rows(rows_of(columns), 1, 0, 0, state, bytearray(), bytearray()) == kernel.BAD_OFFSETS


PLAIN, TRANSACTIONAL, CONTROL = 0, 0x10, 0x30


def naive_producer_rows(batches: list[tuple[int, int, int]]) -> list[int]:
    """(producer id, epoch, attributes) of each batch; runs counted from the back."""
    seen: Counter[tuple[int, int, int]] = Counter()
    runs: Counter[int] = Counter()
    kept = []
    for number in reversed(range(len(batches))):
        producer, epoch, attributes = batches[number]
        if producer < 0:
            continue
        if attributes:
            runs[producer] += 1
            kept.append(number)
        elif seen[producer, epoch, runs[producer]] < 5:
            seen[producer, epoch, runs[producer]] += 1
            kept.append(number)
    return kept[::-1]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1, 3, 3, 3, 4]),
            st.integers(0, 1),
            st.sampled_from([PLAIN] * 6 + [TRANSACTIONAL, CONTROL]),
        ),
        min_size=15,
        max_size=60,
    )
)
def test_rows_that_matter_to_producers_are_kept(batches: list[tuple[int, int, int]]) -> None:
    columns = (kernel.PRODUCER_ID, kernel.PRODUCER_EPOCH, kernel.ATTRIBUTES)
    rows = rows_of(*(dict(zip(columns, item, strict=True)) for item in batches))
    keep = array("q", [-9]) * len(batches)
    found = kernel.producer_rows(rows, len(batches), keep)
    assert keep[:found].tolist() == naive_producer_rows(batches)


def test_the_last_five_batches_of_each_run_are_kept() -> None:
    plain = {kernel.PRODUCER_ID: 3, kernel.PRODUCER_EPOCH: 0}
    marker = plain | {kernel.ATTRIBUTES: CONTROL}
    rows, keep = rows_of(*[plain] * 7, marker, *[plain] * 6), array("q", [-9]) * 14
    assert keep[: kernel.producer_rows(rows, 14, keep)].tolist() == [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from([3, 4]), st.sampled_from(["data", "commit", "abort", "other", "plain"])),
        max_size=20,
    ),
    st.integers(0, 5),
    st.integers(5, 20),
)
def test_transactions_are_followed_to_their_markers(
    batches: list[tuple[int, str]], start: int, stop: int
) -> None:
    data = bytearray()
    for offset, (producer, kind) in enumerate(batches):
        if kind in ("commit", "abort"):
            data += build_marker(Marker(kind == "abort", 0), producer, 0, 1000, base_offset=offset)
        else:
            data += build_batch(
                [NewRecord(1000, b"\0\0\0\3", b"\0\0\0\0\0\0")],
                base_offset=offset,
                producer_id=producer,
                producer_epoch=0,
                transactional=kind != "plain",
                control=kind == "other",
            )
    began: dict[int, int] = {}
    aborted, others = [], []
    for offset, (producer, kind) in enumerate(batches[:stop]):
        if offset < start:
            continue
        if kind == "data":
            began.setdefault(producer, offset)
        elif kind == "other":
            others.append(offset)
        elif kind != "plain" and (first := began.pop(producer, None)) is not None and kind == "abort":
            aborted.append((producer, first, offset))
    rows = array("q", bytes(8 * kernel.ROW * (len(batches) + 1)))
    count, _, _ = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC, 77)
    found_began: dict[int, int] = {}
    found_aborted: list[tuple[int, int, int]] = []
    found_others, row = [], 0
    while True:
        row = kernel.transaction_rows(data, rows, row, count, 77, start, stop, found_began, found_aborted)
        if row == count:
            break
        found_others.append(row)
        row += 1
    assert (found_began, found_aborted, found_others) == (began, aborted, others)


def test_a_marker_outside_of_the_buffer_is_the_callers_mistake() -> None:
    marker = build_marker(Marker(True, 0), 3, 0, 1000)
    rows = array("q", bytes(8 * kernel.ROW))
    kernel.scan(marker, 0, len(marker), rows, 0)
    for shift in (1, -1, 2**62):
        with pytest.raises(ValueError, match="not in the buffer"):
            kernel.transaction_rows(marker, rows, 0, 1, shift, 0, 9, {}, [])
    with pytest.raises(ValueError, match="too short"):
        kernel.transaction_rows(marker, rows, 1, 0, 0, 0, 9, {}, [])


def test_rows_are_in_order_while_offsets_grow() -> None:
    spans = [(5, 7), (8, 8), (20, 30), (30, 31)]
    rows = rows_of(*({kernel.BASE_OFFSET: base, kernel.LAST_OFFSET: last} for base, last in spans))
    assert kernel.rows_in_order(rows, 4, 5) == 3
    assert kernel.rows_in_order(rows, 3, 0) == 3
    assert kernel.rows_in_order(rows, 4, 6) == 0
    assert kernel.rows_in_order(rows, 0, 6) == 0


def test_rows_after_the_largest_offset_are_out_of_order() -> None:
    rows = rows_of({kernel.LAST_OFFSET: 2**63 - 1}, {kernel.BASE_OFFSET: 5})
    assert kernel.rows_in_order(rows, 2, 0) == 1


def test_changes_of_leader_epoch_are_found() -> None:
    rows = rows_of(*({kernel.LEADER_EPOCH: epoch} for epoch in (2, 2, 3, 3, 5)))
    keep = array("q", [-9]) * 5
    assert keep[: kernel.epoch_rows(rows, 5, 2, keep)].tolist() == [2, 4]
    assert keep[: kernel.epoch_rows(rows, 5, -1, keep)].tolist() == [0, 2, 4]


@pytest.mark.parametrize("count", [-1, 2, 2**60])
def test_more_rows_than_there_are_is_the_callers_mistake(count: int) -> None:
    rows, keep = rows_of({}), array("q", [0])
    with pytest.raises(ValueError, match="too short"):
        kernel.index_rows(rows, count, 0, 0, new_state(), bytearray(), bytearray())
    with pytest.raises(ValueError, match="too short"):
        kernel.producer_rows(rows, count, keep)
    with pytest.raises(ValueError, match="too short"):
        kernel.transaction_rows(b"", rows, 0, count, 0, 0, 0, {}, [])
    with pytest.raises(ValueError, match="too short"):
        kernel.rows_in_order(rows, count, 0)
    with pytest.raises(ValueError, match="too short"):
        kernel.epoch_rows(rows, count, 0, keep)
    with pytest.raises(ValueError, match="too short"):
        kernel.index_rows(rows, 1, 0, 0, array("q", [0] * 7), bytearray(), bytearray())
