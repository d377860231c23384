"""Calls every function of a kernel on one input and writes down what came back."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

from typing_extensions import Buffer

_INT64 = (0, 1, -1, 1000, 2**31 - 1, 2**62, 2**63 - 1, -(2**63))


def numbers(count: int) -> array[int]:
    """Zeros in exactly as much memory as they need, so that a sanitizer sees a write behind them."""
    return array("q", [0]) * count


def outcomes(kernel: ModuleType, data: Buffer, random: Random) -> list[Any]:
    """What each call returned and wrote, or which ValueError it raised. Equal randoms make equal calls."""
    size = len(memoryview(data))
    found: list[Any] = []

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except ValueError as error:
            found.append((function.__name__, "ValueError", str(error)))
            return None
        found.append((function.__name__, result))
        return result

    start = random.choice((0, 0, 0, random.randint(-1, size + 1)))
    end = random.choice((size, size, size, random.randint(-1, size + 1)))
    _call_on_batches(kernel, data, start, end, random, call, found)
    _call_on_records(kernel, data, start, end, random, call, found)
    entry_size = random.choice((8, 12, 9))
    entries = random.choice((size // 12, size // 8, -1, size))
    call(kernel.index_floor, data, entries, entry_size, random.choice(_INT64))
    return found


def _call_on_batches(
    kernel: ModuleType, data: Buffer, start: int, end: int, random: Random, call: Any, found: list[Any]
) -> None:
    call(kernel.check_batch, data, start, end)
    call(kernel.find_batch, data, start, end, random.choice((*_INT64, random.randrange(20))))
    for flags in range(4):
        rows = numbers(kernel.ROW * random.randint(0, 5) + random.choice((0, 0, 7)))
        result = call(kernel.scan, data, start, end, rows, flags, random.choice((0, 0, 1000)))
        found.append(rows.tolist())
    if result is None:
        return
    count = result[0]
    state, keep = array("q", [0, -1, -1, -1, -1, -1, 0, 0]), numbers(count)
    offset_entries, time_entries = bytearray(), bytearray()
    base_offset = random.choice((0, 7, 2**62, -1))
    call(
        kernel.index_rows,
        rows,
        count,
        base_offset,
        random.choice((0, 100)),
        state,
        offset_entries,
        time_entries,
    )
    found += [state.tolist(), bytes(offset_entries), bytes(time_entries)]
    call(kernel.producer_rows, rows, count, keep)
    found.append(keep.tolist())
    aborted: list[Any] = []
    began, first = {3: 1}, random.choice((0, 0, 1, -1))
    bounds = random.choice(_INT64), random.choice((*_INT64, 2**63 - 1))
    call(kernel.transaction_rows, data, rows, first, count, random.choice((0, 5)), *bounds, began, aborted)
    found += [began, aborted]
    call(kernel.epoch_rows, rows, count, 0, keep)
    found.append(keep.tolist())
    call(kernel.rows_in_order, rows, count + random.choice((0, 0, 9)), random.choice((0, 7)))


def _call_on_records(
    kernel: ModuleType, data: Buffer, start: int, end: int, random: Random, call: Any, found: list[Any]
) -> None:
    first = start + 61
    count = random.choice((0, 1, 2, 3, 4, -1, 2**31 - 1))
    for dense in (True, False):
        call(kernel.check_records, data, first, end, count, random.choice(_INT64), dense)
    rows = numbers(kernel.REC_ROW * random.randint(0, 5))
    located = call(kernel.decode, data, first, end, random.choice(_INT64), random.choice(_INT64), rows)
    found.append(rows.tolist())
    for index in range(located[0] if located else 0):
        row = rows[index * kernel.REC_ROW : (index + 1) * kernel.REC_ROW]
        at, stop, header_count = (
            row[kernel.REC_HEADERS],
            row[kernel.REC_END],
            row[kernel.REC_HEADER_COUNT],
        )
        call(kernel.headers, data, at, stop, header_count)
    call(kernel.headers, data, first, end, random.choice((1, 5, 2**31 - 1)))
