"""The loops behind verify: offsets against neighbours, epochs against the checkpoint, index entries against batches."""

from __future__ import annotations

from array import array
from struct import pack

import pytest

from ottla.records import check_kernel, kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec


def scanned(*bases: int, counts: int = 2, epochs: dict[int, int] | None = None) -> tuple[array[int], int]:
    """Rows of batches of `counts` records at these base offsets; timestamps grow with the base offset."""
    log = b"".join(
        build_batch(
            [NewRecord(1000 + base + i, None, b"v") for i in range(counts)],
            base_offset=base,
            leader_epoch=(epochs or {}).get(base, 0),
        )
        for base in bases
    )
    rows = array("q", bytes(8 * kernel.ROW * len(bases)))
    count, _, status = kernel.scan(log, 0, len(log), rows, kernel.CHECK_CRC)
    assert (count, status) == (len(bases), kernel.OK)
    return rows, count


def new_state(expected: int = 0) -> array[int]:
    state = array("q", bytes(8 * check_kernel.CHECK_STATE))
    state[check_kernel.EXPECTED_OFFSET] = expected
    for column in (
        "PREVIOUS_BASE",
        "PREVIOUS_EXPECTED",
        "EPOCH",
        "EPOCH_ENTRY",
        "LARGEST_TIMESTAMP",
        "RESUME_OFFSET",
    ):
        state[getattr(check_kernel, column)] = -1
    return state


def check(rows: array[int], count: int, state: array[int], *epochs: int) -> list[list[int]]:
    found = array("q", bytes(8 * check_kernel.FOUND * 20))
    total = check_kernel.check_rows(rows, count, state, array("q", epochs), found)
    return [found[at : at + 4].tolist() for at in range(0, total * 4, 4)]


def test_batches_that_follow_each_other_give_no_finding() -> None:
    state = new_state()
    assert check(*scanned(0, 2, 4), state) == []
    assert state[check_kernel.EXPECTED_OFFSET] == 6
    assert state[check_kernel.BATCHES] == 3
    assert state[check_kernel.RECORDS] == 6
    assert state[check_kernel.GAPS] == 0
    assert state[check_kernel.LARGEST_TIMESTAMP] == 1005


def test_an_offset_that_is_too_large_is_blamed_on_its_own_batch() -> None:
    state = new_state()
    assert check(*scanned(0, 66, 4, 6), state) == [[check_kernel.OVERLAP, 2, 68, 2]]
    assert state[check_kernel.GAPS] == 0


def test_an_offset_that_is_too_small_is_blamed_on_its_own_batch_and_put_right_by_the_next() -> None:
    state = new_state()
    found = check(*scanned(0, 2, 0, 6, 8), state)
    assert found == [[check_kernel.OVERLAP, 2, 4, -1], [check_kernel.RESUMES, 3, 4, 0]]
    assert state[check_kernel.GAPS] == 0


def test_gaps_are_counted_and_the_first_is_kept() -> None:
    state = new_state(expected=3)
    rows, count = scanned(5, 7, 20)
    assert check(rows, count, state) == []
    assert state[check_kernel.GAPS] == 2
    assert state[check_kernel.FIRST_GAP_OFFSET] == 3
    assert state[check_kernel.FIRST_GAP_SIZE] == 2
    assert state[check_kernel.FIRST_GAP_POSITION] == 0


def test_epochs_are_held_against_the_checkpoint() -> None:
    rows, count = scanned(0, 2, 4, 6, epochs={2: 9, 4: 1, 6: 1})
    state = new_state()
    assert check(rows, count, state, 0, 0, 1, 4) == [
        [check_kernel.EPOCH_DIFFERS, 1, 0, 0],
        [check_kernel.EPOCH_AGREES, 2, 1, 1],
    ]


def test_without_a_checkpoint_epochs_must_not_fall() -> None:
    rows, count = scanned(0, 2, 4, epochs={0: 3, 2: 5, 4: 4})
    assert check(rows, count, new_state()) == [[check_kernel.EPOCH_FALLS, 2, 5, 0]]


def test_findings_that_do_not_fit_are_counted() -> None:
    rows, count = scanned(0, 2, 4, epochs={0: 1, 2: 1, 4: 1})
    found = array("q", bytes(8 * check_kernel.FOUND))
    assert check_kernel.check_rows(rows, count, new_state(), array("q", [0, 0]), found) == 3
    assert found.tolist() == [check_kernel.EPOCH_DIFFERS, 0, 0, 1]


def offset_findings(rows: array[int], count: int, *entries: tuple[int, int]) -> tuple[int, list[list[int]]]:
    data = b"".join(pack(">ii", *entry) for entry in entries)
    found = array("q", bytes(8 * check_kernel.FOUND * 20))
    slot, total = check_kernel.check_offset_entries(rows, count, data, 0, len(entries), 100, found)
    return slot, [found[at : at + 4].tolist() for at in range(0, total * 4, 4)]


def test_offset_entries_must_name_the_batch_they_point_at() -> None:
    rows, count = scanned(100, 102, 104)
    size = rows[kernel.SIZE]
    assert offset_findings(rows, count, (3, size), (5, 2 * size), (9, 3 * size)) == (2, [])
    assert offset_findings(rows, count, (2, size))[1] == [[check_kernel.WRONG_OFFSET, 0, 1, 103]]
    assert offset_findings(rows, count, (5, size))[1] == [[check_kernel.PAST_BATCH, 0, 1, 103]]
    assert offset_findings(rows, count, (3, size + 1))[1] == [[check_kernel.NO_BATCH, 0, 103, size + 1]]
    assert offset_findings(rows, count, (1, 0))[1] == [[check_kernel.NO_BATCH, 0, 101, 0]]
    not_ascending = offset_findings(rows, count, (5, 2 * size), (3, size))[1]
    assert not_ascending == [[check_kernel.NOT_ASCENDING, 1, 103, size]]


@pytest.mark.parametrize(
    ("entries", "kinds"),
    [
        ([(1001 + 100, 1), (1005 + 100, 5)], []),
        ([(1001 + 100, 1), (1004 + 100, 5)], [check_kernel.WRONG_TIMESTAMP]),
        ([(1003 + 100, 2)], [check_kernel.INSIDE_BATCH]),
        ([(1003 + 100, 3), (1003 + 100, 5)], [check_kernel.NOT_ASCENDING]),
        ([(1003 + 100, 3), (1005 + 100, 3)], [check_kernel.NOT_ASCENDING]),
        ([(1005 + 100, 9)], []),  # behind these rows
    ],
)
def test_time_entries_must_name_a_batch_with_a_new_largest_timestamp(
    entries: list[tuple[int, int]], kinds: list[int]
) -> None:
    rows, count = scanned(100, 102, 104)
    data = b"".join(pack(">qi", *entry) for entry in entries)
    found = array("q", bytes(8 * check_kernel.FOUND * 20))
    _, total, largest = check_kernel.check_time_entries(rows, count, data, 0, len(entries), 100, -1, found)
    assert [found[at] for at in range(0, total * 4, 4)] == kinds
    assert largest == 1105


def test_a_timestamp_that_came_before_is_no_new_largest() -> None:
    rows, count = scanned(100, 102)
    found = array("q", bytes(8 * check_kernel.FOUND))
    _, total, _ = check_kernel.check_time_entries(rows, count, pack(">qi", 1103, 3), 0, 1, 100, 1103, found)
    assert (total, found[0]) == (1, check_kernel.NOT_LARGEST)


def test_a_header_is_found_behind_garbage_only_in_the_range_of_offsets() -> None:
    batch = bytes(build_batch([NewRecord(1, b"k", b"v")], base_offset=50))
    data = b"\xff" * 37 + batch
    assert check_kernel.find_header(data, 0, len(data), 40, 60, 1000) == 37
    assert check_kernel.find_header(data, 0, len(data), 51, 60, 1000) == len(data) - 25
    assert check_kernel.find_header(data, 0, len(data), 40, 50, 1000) == len(data) - 25
    assert check_kernel.find_header(data, 0, len(data), 40, 60, 10) == len(data) - 25


def test_rows_and_entries_are_bounded_by_what_is_there() -> None:
    rows, count = scanned(0)
    found = array("q", bytes(8 * check_kernel.FOUND))
    with pytest.raises(ValueError, match="too short"):
        check_kernel.check_rows(rows, count + 1, new_state(), array("q"), found)
    with pytest.raises(ValueError, match="too short"):
        check_kernel.check_offset_entries(rows, count, b"", 0, 1, 0, found)
    with pytest.raises(ValueError, match="too short"):
        check_kernel.check_time_entries(rows, count, bytes(11), 0, 1, 0, -1, found)
    with pytest.raises(ValueError, match="does not lie within"):
        check_kernel.find_header(b"", 0, 1, 0, 1, 1)


def test_compressed_rows_are_picked_out() -> None:
    log = b"".join(
        build_batch([NewRecord(1, None, b"v")], base_offset=n, codec=Codec(n % 2)) for n in range(4)
    )
    rows = array("q", bytes(8 * kernel.ROW * 4))
    kernel.scan(log, 0, len(log), rows, 0)
    keep = array("q", bytes(8 * 4))
    assert keep[: check_kernel.codec_rows(rows, 4, keep)].tolist() == [1, 3]
