"""The loops behind `ottla log verify`: damaged batches against neighbours, checkpoints and index entries."""

from __future__ import annotations

from array import array
from random import Random

from ottla.records import check_kernel, kernel
from tests.fuzz.kernel_calls import numbers
from tests.fuzz.kernel_target import exact_buffer, make_input


def check(seed: int, number: int) -> None:
    log, random = make_input(seed, number)
    data, rows = exact_buffer(log), numbers(kernel.ROW * 5)
    count = kernel.scan(data, 0, len(log), rows, 0)[0]
    state = numbers(check_kernel.CHECK_STATE)
    for column in (
        "PREVIOUS_BASE",
        "PREVIOUS_EXPECTED",
        "EPOCH",
        "EPOCH_ENTRY",
        "LARGEST_TIMESTAMP",
        "RESUME_OFFSET",
    ):
        state[getattr(check_kernel, column)] = -1
    found = numbers(check_kernel.FOUND * random.randint(0, 3) + random.choice((0, 3)))
    epochs = array("q", [0, 0, 1, 5, 3, 2**62][: 2 * random.randint(0, 3)])
    assert check_kernel.check_rows(rows, count, state, epochs, found) >= 0
    assert check_kernel.codec_rows(rows, count, numbers(count)) <= count
    if count:
        _check_entries(rows, count, random)
    start = random.randint(0, len(log))
    position = check_kernel.find_header(data, start, len(log), 0, 2**62, random.choice((100, 2**31)))
    assert start <= position <= len(log)


def _check_entries(rows: array[int], count: int, random: Random) -> None:
    found = numbers(check_kernel.FOUND * random.randint(0, 3))
    entries = exact_buffer(random.randbytes(random.choice((0, 7, 24, 240))))
    base, slot = random.choice((0, 7, 2**62)), random.randrange(3)
    offsets, times = len(entries) // 8, len(entries) // 12
    after, _ = check_kernel.check_offset_entries(
        rows, count, entries, min(slot, offsets), offsets, base, found
    )
    assert after <= offsets
    after = check_kernel.check_time_entries(rows, count, entries, min(slot, times), times, base, -1, found)[0]
    assert after <= times
