"""The kernel on damaged batches: whatever the bytes are, it answers with a status or a documented error."""

from __future__ import annotations

import ctypes
from random import Random
from typing import Any

from ottla.records import coalesce_kernel, kernel
from ottla.records.cleaning import compact_kernel
from ottla.records.cleaning.offset_map_kernel import OffsetMap
from tests.fuzz import compact_calls
from tests.fuzz.kernel_calls import numbers, outcomes
from tests.fuzz.kernel_inputs import a_log, damage

# What the kernel may say to a caller who asked for a wrong range, or for headers where there are none.
DOCUMENTED = (
    "does not lie within",
    "do not fit into",
    "no index has",
    "do not lie within",
    "are too short",
    "not the headers",
    "is not in the buffer",
)


def exact_buffer(data: bytes | bytearray) -> ctypes.Array[ctypes.c_ubyte]:
    """A copy in memory of exactly its size: bytes and bytearray have a spare byte behind the data."""
    return (ctypes.c_ubyte * len(data)).from_buffer_copy(data)


def make_input(seed: int, number: int) -> tuple[bytearray, Random]:
    """The damaged log of this number, and the random that chooses the calls on it."""
    random = Random(f"{seed}/{number}")
    return damage(random, a_log(random)), random


def check(seed: int, number: int) -> None:
    data, random = make_input(seed, number)
    for item in outcomes(kernel, exact_buffer(data), random):
        if not isinstance(item, tuple):
            continue
        name, *result = item
        if result[0] == "ValueError":
            assert any(words in result[1] for words in DOCUMENTED), item
        elif name in ("check_batch", "check_records", "find_batch"):
            assert result[0][0] in kernel.STATUS_MEANING, item
        elif name in ("scan", "decode"):
            assert result[0][2] in kernel.STATUS_MEANING, item
    for item in compact_calls.outcomes(compact_kernel, OffsetMap, exact_buffer(data), random):
        if isinstance(item, tuple) and isinstance(item[1], str):
            assert any(words in item[1] for words in DOCUMENTED), item
    _gather(data, random)


def _gather(data: bytearray, random: Random) -> None:
    """What is laid side by side is good, wherever it was said to lie."""
    rows = numbers(kernel.ROW * 8)
    found, _, _ = kernel.scan(data, 0, len(data), rows, 0)
    count = random.randint(1, 8)
    places = numbers(coalesce_kernel.PLACE * count)
    for number in range(count):
        row = random.randrange(found) * kernel.ROW if found and random.random() < 0.9 else None
        wild = (random.randint(-1, len(data) + 1), random.choice((61, 80, len(data), -1, 2**62)))
        at, size = wild if row is None else (rows[row + kernel.POSITION], rows[row + kernel.SIZE])
        places[number * coalesce_kernel.PLACE + coalesce_kernel.RECORDS] = at
        places[number * coalesce_kernel.PLACE + coalesce_kernel.SIZE] = size
    out: Any = exact_buffer(bytes(random.choice((0, 100, len(data), 4 * len(data)))))
    taken, size, last_offset, *_ = coalesce_kernel.coalesce(
        exact_buffer(data), places, count, random.choice((0, 9, 2**63 - 1)), 3, 1 << 20, False, out, rows
    )
    written = numbers(kernel.ROW * (taken + 1))
    flags = kernel.CHECK_CRC | kernel.CHECK_RECORDS
    assert kernel.scan(bytes(out), 0, size, written, flags) == (taken, size, kernel.OK)
    assert not taken or written[(taken - 1) * kernel.ROW + kernel.LAST_OFFSET] == last_offset
