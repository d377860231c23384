"""Calls every function of the cleaner's kernel on one input and writes down what came back."""

from __future__ import annotations

import ctypes
from array import array
from random import Random
from types import ModuleType
from typing import Any

from typing_extensions import Buffer

from ottla.records import kernel
from ottla.records.cleaning.offset_map_kernel import OffsetMap
from tests.fuzz.kernel_calls import numbers

_ROWS = 8


def outcomes(compact: ModuleType, map_class: type[OffsetMap], data: Buffer, random: Random) -> list[Any]:
    """What each call returned and wrote, or which ValueError it raised. Equal randoms make equal calls."""
    size = len(memoryview(data))
    rows = numbers(kernel.ROW * _ROWS)
    count, _, _ = kernel.scan(data, 0, size, rows, 0, 100)
    shift = random.choice((100, 100, 100, 0, 99, 101))
    actions = bytes(random.choice((0, 0, 0, 1, 2, 3, 4, 5)) for _ in range(_ROWS))
    offsets = array("q", sorted(random.sample(range(30), 3)))
    keep = numbers(count)
    found: list[Any] = [compact.special_rows(rows, count, offsets, keep), keep.tolist()]
    offset_map = map_class(
        24 * random.choice((0, 4, 9, 1000)), 0.9, random.getrandbits(64), random.getrandbits(64)
    )
    asked = count + random.choice((0, 0, 0, 9))
    out = (ctypes.c_ubyte * random.choice((0, size, size + 400, 2 * size + 2000)))()
    latest, to = random.choice((-1, 5, 2**62)), random.choice((0, 0, 7, -1))
    calls: list[tuple[Any, ...]] = [
        (offset_map.put_rows, data, shift, rows, 0, asked, actions, random.choice((0, 3, -(2**63)))),
        (compact.filter_rows, offset_map, data, shift, rows, 0, asked, actions, latest, 50, 10**13, out, to),
    ]
    for function, *arguments in calls:
        try:
            result = function(*arguments)
        except ValueError as error:
            result = str(error)
        found += [(function.__name__, result), offset_map.entries, offset_map.get(b"key"), bytes(out)]
    return found
