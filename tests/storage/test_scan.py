"""Walking a log file: windows, batches larger than them, damage, and where the walk says it stopped."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.storage import scan
from ottla.storage.scan import Scan
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import START_MS
from tests.storage.world import batch


def walk(
    fs: SimulatedDisk, data: bytes, *, start: int = 0, flags: int = kernel.CHECK_CRC
) -> tuple[list[int], Scan]:
    """Base offsets found, and the scan with its verdict."""
    file = fs.open("/log", create=True)
    file.truncate(0)
    file.pwrite(data, 0)
    walked = Scan(file, len(data), start=start, flags=flags)
    found = []
    for window in walked:
        for at in range(0, window.count * kernel.ROW, kernel.ROW):
            position, size = window.rows[at + kernel.POSITION], window.rows[at + kernel.SIZE]
            found.append(window.rows[at + kernel.BASE_OFFSET])
            if window.data is not None:
                inside = position - window.position
                assert bytes(window.data[inside : inside + size]) == data[position : position + size]
    return found, walked


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.mark.parametrize("window", [100, 300, 1000, 4 << 20])
@pytest.mark.parametrize(
    "sizes", [[10], [10] * 20, [10, 500, 10, 2000, 30], [5000], [900, 900, 900], list(range(1, 200, 7))]
)
def test_every_batch_is_found_whatever_the_window(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch, window: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(scan, "WINDOW_BYTES", window)
    data = b"".join(batch(base_offset=offset, value=b"v" * size) for offset, size in enumerate(sizes))
    found, walked = walk(disk, data)
    assert found == list(range(len(sizes)))
    assert (walked.position, walked.status) == (len(data), kernel.OK)


def test_more_batches_than_rows_are_found(disk: SimulatedDisk) -> None:
    data = b"".join(batch(base_offset=offset) for offset in range(3000))
    assert walk(disk, data)[0] == list(range(3000))


def test_a_scan_may_begin_at_any_batch(disk: SimulatedDisk) -> None:
    data = b"".join(batch(base_offset=offset) for offset in range(10))
    assert walk(disk, data, start=len(batch()) * 4)[0] == list(range(4, 10))


def test_an_empty_file_has_nothing(disk: SimulatedDisk) -> None:
    found, walked = walk(disk, b"")
    assert (found, walked.position, walked.status) == ([], 0, kernel.OK)


@settings(max_examples=60)
@given(st.integers(0, 5), st.integers(1, 200), st.sampled_from([150, 4 << 20]))
def test_a_cut_file_ends_with_its_last_whole_batch(whole: int, more: int, window: int) -> None:
    one = batch(base_offset=0, value=b"v" * 130)
    data = b"".join(batch(base_offset=n, value=b"v" * 130) for n in range(whole + 1))[
        : len(one) * whole + min(more, len(one) - 1)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "WINDOW_BYTES", window)
        found, walked = walk(SimulatedDisk(), data)
    assert found == list(range(whole))
    assert walked.position == whole * len(one)
    assert walked.status == kernel.TRUNCATED


@pytest.mark.parametrize(
    ("at", "value", "status"),
    [
        (8, 0xFF, kernel.BAD_LENGTH),
        (11, 1, kernel.BAD_LENGTH),
        (16, 9, kernel.BAD_MAGIC),
        (20, 0x55, kernel.BAD_CRC),
        (70, 0x55, kernel.BAD_CRC),
    ],
)
def test_a_bad_batch_stops_the_walk_and_says_why(
    disk: SimulatedDisk, at: int, value: int, status: int
) -> None:
    size = len(batch())
    data = bytearray(b"".join(batch(base_offset=offset) for offset in range(5)))
    if at == 11:
        data[2 * size + 8 : 2 * size + 12] = b"\0\0\0\1"
    else:
        data[2 * size + at] = value
    found, walked = walk(disk, bytes(data))
    assert found == [0, 1]
    assert (walked.position, walked.status) == (2 * size, status)


def test_without_the_crc_only_the_chain_of_batches_counts(disk: SimulatedDisk) -> None:
    data = bytearray(batch(base_offset=0) + batch(base_offset=1))
    data[70] ^= 1
    assert walk(disk, bytes(data), flags=0)[0] == [0, 1]
    assert walk(disk, bytes(data))[0] == []


def test_old_formats_are_walked_too(disk: SimulatedDisk) -> None:
    old = [
        build_message_set([LegacyRecord(n, START_MS, 0, b"k", b"v")], magic) for n, magic in ((0, 0), (1, 1))
    ]
    found, walked = walk(disk, old[0] + old[1] + batch(base_offset=2))
    assert found == [0, 1, 2]
    assert walked.status == kernel.OK


# -- batches too large to hold


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW_BYTES", 256)
    monkeypatch.setattr(scan, "LARGE_BATCH_BYTES", 1000)


@pytest.mark.usefixtures("small_limits")
def test_a_very_large_batch_is_checked_in_pieces(disk: SimulatedDisk) -> None:
    data = (
        batch(base_offset=0)
        + batch(3, base_offset=1, value=b"v" * 5000, leader_epoch=6)
        + batch(base_offset=4)
    )
    found, walked = walk(disk, data)
    assert found == [0, 1, 4]
    assert (walked.position, walked.status) == (len(data), kernel.OK)


@pytest.mark.usefixtures("small_limits")
def test_a_very_large_batch_gives_the_same_row_as_any_other(disk: SimulatedDisk) -> None:
    data = batch(
        3,
        base_offset=7,
        value=b"v" * 500,
        leader_epoch=6,
        producer_id=5,
        producer_epoch=2,
        base_sequence=9,
        transactional=True,
    )
    file = disk.open("/log", create=True)
    file.pwrite(data, 0)
    windows = [(window.rows[: kernel.ROW], window.data) for window in Scan(file, len(data))]
    assert len(windows) == 1
    assert windows[0][1] is None
    rows = windows[0][0][:]
    kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC)
    assert windows[0][0] == rows


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("at", [17, 40, 61, 3000, -1])
def test_damage_in_a_very_large_batch_is_found(disk: SimulatedDisk, at: int) -> None:
    first, large = batch(base_offset=0), bytearray(batch(base_offset=1, value=b"v" * 5000))
    large[at] ^= 1
    found, walked = walk(disk, first + bytes(large))
    assert found == [0]
    assert (walked.position, walked.status) == (len(first), kernel.BAD_CRC)


@pytest.mark.usefixtures("small_limits")
def test_a_large_message_of_an_old_format_stops_the_walk_without_an_error(disk: SimulatedDisk) -> None:
    old = build_message_set([LegacyRecord(1, START_MS, 0, b"k", b"v" * 5000)], 1)
    found, walked = walk(disk, batch(base_offset=0) + old)
    assert found == [0]
    assert walked.status == kernel.BAD_LENGTH


@pytest.mark.usefixtures("small_limits")
def test_a_length_that_lies_costs_no_memory(disk: SimulatedDisk) -> None:
    liar = bytearray(batch())
    liar[8:12] = (2**31 - 1).to_bytes(4, "big")
    found, walked = walk(disk, batch() + bytes(liar))
    assert found == [0]
    assert walked.status == kernel.TRUNCATED
