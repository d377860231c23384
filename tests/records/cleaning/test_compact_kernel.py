"""The cleaner's loops: the hash, the map, what stays of a batch; compiled and interpreted alike."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from types import ModuleType

import pytest

from ottla.records import batch, kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.cleaning import ahead_kernel, compact_kernel
from ottla.records.cleaning.compact_kernel import DONE, FILTER
from ottla.records.cleaning.offset_map_kernel import OffsetMap
from ottla.records.record import Record, read_records
from tests import kernels
from tests.fuzz import compact_calls
from tests.fuzz.kernel_inputs import a_log
from tests.fuzz.kernel_target import exact_buffer, make_input

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


Kernels = tuple[ModuleType, type[OffsetMap]]


@pytest.fixture(scope="module")
def interpreted() -> Kernels:
    found = kernels.interpreted_records()
    return found["compact_kernel"], found["offset_map_kernel"].OffsetMap


def test_the_hash_is_siphash_2_4_with_128_bits() -> None:
    # From the reference implementation's vectors: key 00..0f, input 00, 01, ...
    known = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
        2: "8177228da4a45dc7fca38bdef60affe4",
    }
    for size, expected in known.items():
        low, high = ahead_kernel.siphash(bytes(range(size)), *KEY)
        assert (low.to_bytes(8, "little") + high.to_bytes(8, "little")).hex() == expected


def test_the_hash_sees_every_byte_the_length_and_the_key() -> None:
    seen = {ahead_kernel.siphash(bytes(size), *KEY) for size in range(40)}
    seen |= {ahead_kernel.siphash(bytes([0] * at + [1] + [0] * (39 - at)), *KEY) for at in range(40)}
    seen |= {
        ahead_kernel.siphash(bytes(39), KEY[0] ^ 1, KEY[1]),
        ahead_kernel.siphash(bytes(39), *KEY[::-1]),
    }
    assert len(seen) == 82


def test_both_kernels_answer_alike_on_good_batches(interpreted: Kernels) -> None:
    for number in range(200):
        log = bytes(a_log(Random(number)))
        first = compact_calls.outcomes(compact_kernel, OffsetMap, log, Random(number))
        assert compact_calls.outcomes(*interpreted, log, Random(number)) == first, number


@pytest.mark.slice
def test_both_kernels_answer_alike_on_damaged_batches(interpreted: Kernels) -> None:
    for number in range(800):
        data, random = make_input(2, number)
        state = random.getstate()
        first = compact_calls.outcomes(compact_kernel, OffsetMap, exact_buffer(data), random)
        random.setstate(state)
        assert compact_calls.outcomes(*interpreted, exact_buffer(data), random) == first, number


def test_both_kernels_grow_their_maps_alike(interpreted: Kernels) -> None:
    data, rows = _scanned([(0, _records([f"key{i}" for i in range(5_000)]))])
    for map_class in (OffsetMap, interpreted[1]):
        offset_map = map_class(24 << 20, 0.9, *KEY)
        assert offset_map.size_bytes == 24 << 12
        assert offset_map.put_rows(data, 0, rows, 0, 1, bytes(1), 0) == (1, DONE)
        assert offset_map.entries == 5_000
        assert offset_map.size_bytes == 24 << 14
        assert [offset_map.get(b"key%d" % i) for i in (0, 4_999)] == [0, 4_999]
        assert offset_map.get(b"other") == -1


def test_the_map_holds_as_many_keys_as_it_has_slots_for() -> None:
    offset_map = OffsetMap(24 * 100, 0.9, *KEY)
    batches = [(i, _records([f"key{i}"])) for i in range(200)]
    data, rows = _scanned(batches)
    row, why = offset_map.put_rows(data, 0, rows, 0, 200, bytes(200), 0)
    assert (row, why, offset_map.entries) == (90, compact_kernel.FULL, 90)
    assert all(offset_map.get(b"key%d" % i) == i for i in range(90))
    # A batch may overfill it a little, so that one with many keys is no obstacle.
    data, rows = _scanned([(0, _records([f"more{i}" for i in range(96)]))])
    offset_map = OffsetMap(24 * 100, 0.5, *KEY)
    assert offset_map.put_rows(data, 0, rows, 0, 1, bytes(1), 0) == (1, DONE)


def test_records_below_the_first_offset_do_not_enter_the_map() -> None:
    data, rows = _scanned([(10, _records(["a", "b", "c"]))])
    offset_map = OffsetMap(24 * 100, 0.9, *KEY)
    offset_map.put_rows(data, 0, rows, 0, 1, bytes(1), 11)
    assert [offset_map.get(key) for key in (b"a", b"b", b"c")] == [-1, 11, 12]


def test_records_past_the_latest_offset_stay() -> None:
    assert _filter(["a", "a", "a", "a"], latest=1) == [2, 3]
    assert _filter(["a", "a", "a", "a"], latest=3) == [3]


def test_a_batch_of_many_records_is_read_in_several_steps() -> None:
    keys = [f"key{i % 70}" for i in range(200)]
    assert _filter(keys, latest=199) == list(range(130, 200))


@pytest.mark.parametrize("far", [-(2**63), -(2**63) + 999])
def test_a_batch_whose_times_are_too_far_from_the_horizon_does_without(far: int) -> None:
    records = [NewRecord(far, b"a", None), NewRecord(far, b"a", None)]
    data, rows = _scanned([(0, records)])
    offset_map = OffsetMap(24 * 100, 0.9, *KEY)
    offset_map.put_rows(data, 0, rows, 0, 1, bytes(1), 0)
    out = bytearray(1000)
    row, size, why = compact_kernel.filter_rows(offset_map, data, 0, rows, 0, 1, bytes(1), 1, 0, 1000, out, 0)
    assert (row, why) == (1, DONE)
    assert not batch.parse_header(out).has_delete_horizon
    assert [record.timestamp for record in read_records(out[:size])] == [far]


def test_without_room_for_the_worst_case_nothing_is_written() -> None:
    data, rows = _scanned([(0, _records(["a", "b"])), (2, _records(["c"]))])
    offset_map = OffsetMap(24 * 100, 0.9, *KEY)
    size = rows[kernel.SIZE] + 2 * compact_kernel.GROWTH_BYTES
    for room, expected in ((size - 1, 0), (size, 1)):
        out = bytearray(room)
        row, to, why = compact_kernel.filter_rows(offset_map, data, 0, rows, 0, 2, bytes(2), 9, 0, 0, out, 0)
        assert (row, why) == (expected, compact_kernel.NO_ROOM)
        assert to == (rows[kernel.SIZE] if expected else 0)
        assert out[to:] == bytes(room - to)


def _records(keys: Sequence[str]) -> list[NewRecord]:
    return [NewRecord(5, key.encode(), b"v") for key in keys]


def _scanned(batches: Sequence[tuple[int, list[NewRecord]]]) -> tuple[bytes, array[int]]:
    data = b"".join(build_batch(records, base_offset=base) for base, records in batches)
    rows = array("q", bytes(8 * kernel.ROW * len(batches)))
    count, _, _ = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)
    assert count == len(batches)
    return data, rows


def _filter(keys: list[str], latest: int) -> list[int]:
    """Offsets that stay of one batch; all its keys are in the map."""
    data, rows = _scanned([(0, _records(keys))])
    offset_map = OffsetMap(24 * 1000, 0.9, *KEY)
    offset_map.put_rows(data, 0, rows, 0, 1, bytes(1), 0)
    out = bytearray(len(data) + 10 * len(keys))
    row, size, why = compact_kernel.filter_rows(
        offset_map, data, 0, rows, 0, 1, bytes([FILTER]), latest, 0, 0, out, 0
    )
    assert (row, why) == (1, DONE)
    check = array("q", bytes(8 * kernel.ROW))
    assert kernel.scan(out, 0, size, check, kernel.CHECK_CRC | kernel.CHECK_RECORDS)[::2] == (1, kernel.OK)
    found: list[Record] = list(read_records(out[:size]))
    assert all(record.key == keys[record.offset].encode() for record in found)
    return [record.offset for record in found]
