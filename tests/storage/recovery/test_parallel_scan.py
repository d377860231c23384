"""Scanning a segment in parts gives the rows, the order and the end of a scan in one go."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.runtime import Runtime, SystemRuntime
from ottla.storage.fs import File
from ottla.storage.recovery import parallel_scan
from ottla.storage.recovery.parallel_scan import scan_whole
from ottla.storage.scan import Scan, Window
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import batch

LARGE = 300
PART = 2000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_scan, "PART_BYTES", PART)
    monkeypatch.setattr(parallel_scan, "LARGE_BYTES", LARGE)
    monkeypatch.setattr(parallel_scan, "_FIRST_BATCHES", 3)


@pytest.fixture(scope="module")
def system() -> Iterator[SystemRuntime]:
    runtime = SystemRuntime()
    yield runtime
    runtime.close()


def written(data: bytes | bytearray) -> File:
    file = SimulatedDisk().open("/log", create=True)
    file.pwrite(data, 0)
    return file


def batches(*sizes: int) -> bytes:
    return b"".join(batch(base_offset=number, value=b"v" * size) for number, size in enumerate(sizes))


def rows_of(windows: Iterator[Window]) -> list[int]:
    return [number for window in windows for number in window.rows[: window.count * kernel.ROW]]


def parts_of(file: File, size: int) -> list[tuple[int, int]]:
    seen = []

    class Watching(SimulatedRuntime):
        def map_blocking(self, work: Any, items: Any, workers: int, on_done: Any = None) -> Any:
            seen.extend(listed := list(items))
            return list(reversed(super().map_blocking(work, listed, workers, on_done)))

    list(scan_whole(Watching(), file, size, kernel.CHECK_CRC))
    return [tuple(part) for part in seen]


@given(
    sizes=st.lists(st.sampled_from([1, 50, 400, 900, 3000]), max_size=30),
    damage=st.none() | st.tuples(st.integers(0, 20_000), st.integers(1, 255)),
    cut=st.integers(0, 200),
)
@settings(max_examples=150)
def test_parts_give_what_one_scan_gives(
    system: SystemRuntime, sizes: list[int], damage: tuple[int, int] | None, cut: int
) -> None:
    data = bytearray(batches(*sizes))
    if damage and damage[0] < len(data):
        data[damage[0]] ^= damage[1]
    del data[max(0, len(data) - cut) :]
    file = written(data)
    expected = rows_of(iter(Scan(file, len(data))))
    runtimes: list[Runtime] = [SimulatedRuntime(), system]
    for runtime in runtimes:
        assert rows_of(scan_whole(runtime, file, len(data), kernel.CHECK_CRC)) == expected


def test_large_batches_are_scanned_in_parts_that_meet_at_batches() -> None:
    data = batches(*[900] * 9)
    size = len(data) // 9
    assert parts_of(written(data), len(data)) == [(0, 3 * size), (3 * size, 6 * size), (6 * size, 9 * size)]


def test_rows_come_in_order_whichever_part_is_done_first() -> None:
    data = batches(*[900] * 9)
    file = written(data)

    class Backwards(SimulatedRuntime):
        def map_blocking(self, work: Any, items: Any, workers: int, on_done: Any = None) -> Any:
            return list(reversed(super().map_blocking(work, items, workers, on_done)))

    found = rows_of(scan_whole(Backwards(), file, len(data), kernel.CHECK_CRC))
    assert found[kernel.BASE_OFFSET :: kernel.ROW] == list(range(9))


def test_small_batches_are_left_to_one_thread() -> None:
    data = batches(*[10] * 200)
    assert sum(end - start for start, end in parts_of(written(data), len(data))) < PART


def test_small_batches_behind_large_ones_are_left_to_one_thread() -> None:
    data = batches(*[3000] * 4, *[10] * 400)
    assert parts_of(written(data), len(data))[-1][1] < len(data)


def test_a_short_file_is_not_cut_into_parts() -> None:
    data = batches(*[900] * 4)
    assert parts_of(written(data), len(data)) == []


def test_an_error_of_the_disk_in_a_part_is_raised() -> None:
    disk = SimulatedDisk()
    data = batches(*[900] * 9)
    disk.open("/log", create=True).pwrite(data, 0)
    point = Point("read", "log", "ottla.storage.scan.__iter__")
    faulty = FaultyFileSystem(disk, Fault(point, nth=1))
    with pytest.raises(OSError, match="Input/output") as raised:
        list(scan_whole(SimulatedRuntime(), faulty.open("/log"), len(data), kernel.CHECK_CRC))
    assert raised.value.errno == errno.EIO
    assert faulty.fired
