"""Columns hold what the records hold, in buffers of any size."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.columnar import arrow_kernel
from ottla.records.record import read_records
from tests.strategies import record_lists

_ALL = 63
_LAST_MS = (2**63 - 1) // 1000


class Buffers:
    """Room for a few rows, and what was put there."""

    def __init__(self, room: int, data_bytes: int, header_room: int) -> None:
        self.room, self.header_room = room, header_room
        self.views = [memoryview(bytearray(size)) for size in (8 * room, 8 * room, 4 * room)]
        for count, with_bits in (
            (room, True),
            (room, True),
            (room, None),
            (header_room, False),
            (header_room, True),
        ):
            self.views.append(memoryview(bytearray(4 * count + 4)))
            if with_bits is not False:
                self.views.append(memoryview(bytearray((count + 7) // 8)))
            if with_bits is not None:
                self.views.append(memoryview(bytearray(data_bytes)))
        formats: Any = "qqiiBBiBBiBiBiBB"
        self.views = [view.cast(format) for view, format in zip(self.views, formats, strict=True)]

    def rows(self, columns: Any) -> list[tuple[Any, ...]]:
        count = columns.state()[0]
        v = self.views
        found = []
        for row in range(count):
            first, last = v[9][row], v[9][row + 1]
            headers = [
                (bytes(v[12][v[11][at] : v[11][at + 1]]), _field(v[13], v[14], v[15], at))
                for at in range(first, last)
            ]
            assert bool(headers) == bool(v[10][row // 8] >> row % 8 & 1)
            key, value = _field(v[3], v[4], v[5], row), _field(v[6], v[7], v[8], row)
            found.append((v[0][row], v[1][row], v[2][row], key, value, headers))
        return found


def _field(ends: memoryview, bits: memoryview, data: memoryview, at: int) -> bytes | None:
    return bytes(data[ends[at] : ends[at + 1]]) if bits[at // 8] >> at % 8 & 1 else None


def _scan(data: bytes | bytearray) -> tuple[array[int], int]:
    rows = array("q", bytes(8 * kernel.ROW * 64))
    count, position, status = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)
    assert (position, status) == (len(data), kernel.OK)
    return rows, count


def _fill(columns: Any, data: bytes, aborted: array[int], room: int) -> list[tuple[Any, ...]]:
    rows, count = _scan(data)
    found: list[tuple[Any, ...]] = []
    at, needs = 0, (0, 0, 0, 0)
    while True:
        buffers = Buffers(room, max(300, *needs), max(4, needs[2]))
        columns.renew(buffers.room, buffers.header_room, tuple(buffers.views))
        at, status = columns.fill(data, rows, at, count, 0, aborted)
        found += buffers.rows(columns)
        if status != arrow_kernel.FULL:
            assert status in (arrow_kernel.DONE, arrow_kernel.PAST)
            return found
        needs = columns.needs()


def _expected(data: bytes, start: int, end: int) -> list[tuple[Any, ...]]:
    found, position = [], 0
    while position < len(data):
        for record in read_records(data, position):
            if start <= record.offset < end:
                time = max(-_LAST_MS, min(_LAST_MS, record.timestamp)) * 1000
                found.append((record.offset, time, 0, record.key, record.value, record.headers))
        position += int.from_bytes(data[position + 8 : position + 12], "big") + 12
    return found


@given(
    st.lists(record_lists, min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 12), st.integers(0, 40)
)
def test_every_record_is_there_once_whatever_the_room(
    batches: list[list[NewRecord]], room: int, start: int, size: int
) -> None:
    data, offset = bytearray(), 0
    for records in batches:
        data += build_batch(records, base_offset=offset)
        offset += len(records)
    columns = arrow_kernel.Columns(_ALL, start, start + size)
    found = _fill(columns, bytes(data), array("q"), room)
    assert found == _expected(bytes(data), start, start + size)


def test_aborted_transactions_and_markers_are_left_out() -> None:
    def batch(offset: int, producer: int, **more: Any) -> bytes:
        made = build_batch(
            [NewRecord(0, None, b"%d" % offset)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            **more,
        )
        return bytes(made)

    data = b"".join(
        (
            batch(0, 1),
            batch(1, 2),
            batch(2, 1),
            batch(3, 1, control=True),
            batch(4, 1),
            batch(5, 2, control=True),
        )
    )
    aborted = array("q", (1, 0, 3, 2, 100, 200))
    columns = arrow_kernel.Columns(_ALL, 0, 100)
    assert [row[0] for row in _fill(columns, data, aborted, 10)] == [1, 4]


def test_columns_that_nobody_asked_for_need_no_buffers() -> None:
    data = bytes(build_batch([NewRecord(5, b"k", b"v", [(b"h", b"x")])], base_offset=7))
    columns = arrow_kernel.Columns(arrow_kernel.OFFSET, 0, 100)
    offsets = memoryview(bytearray(8)).cast("q")
    columns.renew(1, 0, (offsets, *[None] * 15))
    rows, count = _scan(data)
    assert columns.fill(data, rows, 0, count, 0, array("q")) == (1, arrow_kernel.DONE)
    assert list(offsets) == [7]


def test_records_that_are_not_as_many_as_announced_are_bad() -> None:
    data = build_batch([NewRecord(5, None, b"v"), NewRecord(5, None, b"w")])
    rows, count = _scan(data)
    rows[kernel.COUNT] = 1
    columns = arrow_kernel.Columns(arrow_kernel.OFFSET, 0, 100)
    columns.renew(9, 0, (memoryview(bytearray(72)).cast("q"), *[None] * 15))
    assert columns.fill(data, rows, 0, count, 0, array("q")) == (0, arrow_kernel.BAD)
