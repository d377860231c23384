# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over index entries and over the rows that scan() writes; index_kernel.pyi has the contracts."""

from __future__ import annotations

from struct import Struct

import cython

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")

_OK = cython.declare(cython.int, 0)
_BAD_OFFSETS = cython.declare(cython.int, 7)
_INT32_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
_SIGN = cython.declare(cython.longlong, 0x80000000)
_PAGE = cython.declare(cython.Py_ssize_t, 4096)

# A row of scan() and its columns, as kernel.py has them.
_ROW = cython.declare(cython.Py_ssize_t, 16)
_POSITION = cython.declare(cython.Py_ssize_t, 0)
_SIZE = cython.declare(cython.Py_ssize_t, 1)
_BASE_OFFSET = cython.declare(cython.Py_ssize_t, 2)
_LAST_OFFSET = cython.declare(cython.Py_ssize_t, 3)
_MAX_TIMESTAMP = cython.declare(cython.Py_ssize_t, 4)
_LEADER_EPOCH = cython.declare(cython.Py_ssize_t, 5)
_ATTRIBUTES = cython.declare(cython.Py_ssize_t, 7)
_PRODUCER_ID = cython.declare(cython.Py_ssize_t, 8)
_PRODUCER_EPOCH = cython.declare(cython.Py_ssize_t, 9)

_TRANSACTIONAL_OR_CONTROL = cython.declare(cython.longlong, 0x30)
_BATCHES_KEPT = cython.declare(cython.int, 5)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _key(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, wide: cython.bint) -> cython.longlong:
    """The big-endian int64 (wide) or int32 at `at`."""
    value: cython.longlong = view[at]
    value = value * 256 + view[at + 1]
    value = value * 256 + view[at + 2]
    value = value * 256 + view[at + 3]
    value -= (value & _SIGN) << 1
    if wide:
        value = value * 256 + view[at + 4]
        value = value * 256 + view[at + 5]
        value = value * 256 + view[at + 6]
        value = value * 256 + view[at + 7]
    return value


def index_floor(buf, entries: cython.Py_ssize_t, entry_size: cython.Py_ssize_t, target: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    if entry_size != 8 and entry_size != 12:
        raise ValueError(f"no index has entries of {entry_size} bytes")
    if entries < 0 or entries > len(buf) // entry_size:
        raise ValueError(f"{entries} entries of {entry_size} bytes do not fit into {len(buf)} bytes")
    wide: cython.bint = entry_size == 12
    low: cython.Py_ssize_t = -1  # its key is <= target, or there is no such slot
    high: cython.Py_ssize_t = entries  # its key is > target, or there is no such slot
    middle: cython.Py_ssize_t = entries - _PAGE // entry_size
    if middle <= low:
        middle = (low + high) // 2
    while high - low > 1:
        if _key(view, middle * entry_size, wide) <= target:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return low


def index_rows(
    rows,
    count: cython.Py_ssize_t,
    base_offset: cython.longlong,
    interval: cython.longlong,
    state,
    offset_entries: bytearray,
    time_entries: bytearray,
):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = state
    if count < 0 or count > len(rows) // 16 or len(state) < 8:
        raise ValueError("rows or state are too short")
    at: cython.Py_ssize_t
    used: cython.Py_ssize_t
    last_offset: cython.longlong
    for used in range(count):
        at = used * _ROW
        kept[6] = used
        last_offset = row[at + _LAST_OFFSET]
        if base_offset < 0 or last_offset < base_offset or last_offset - base_offset > _INT32_MAX:
            return _BAD_OFFSETS
        if row[at + _MAX_TIMESTAMP] > kept[1]:
            kept[1] = row[at + _MAX_TIMESTAMP]
            kept[2] = last_offset
        if kept[0] > interval:
            if last_offset <= kept[3] or row[at + _POSITION] > _INT32_MAX:
                return _BAD_OFFSETS
            offset_entries += _OFFSET_ENTRY.pack(last_offset - base_offset, row[at + _POSITION])
            kept[3] = last_offset
            if kept[1] > kept[4]:
                time_entries += _TIME_ENTRY.pack(kept[1], kept[2] - base_offset)
                kept[4] = kept[1]
                kept[5] = kept[2]
            kept[0] = 0
        kept[0] += row[at + _SIZE]
    kept[6] = count
    return _OK


def producer_rows(rows, count: cython.Py_ssize_t, keep):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // 16 or count > len(keep):
        raise ValueError("rows or keep are too short")
    # From the back: per producer, how often an epoch was seen before its next transactional or control batch.
    runs: dict = {}
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = count
    at: cython.Py_ssize_t
    seen: cython.int
    producer_id: cython.longlong
    while index > 0:
        index -= 1
        at = index * _ROW
        producer_id = row[at + _PRODUCER_ID]
        if producer_id < 0:
            continue
        if row[at + _ATTRIBUTES] & _TRANSACTIONAL_OR_CONTROL:
            runs.pop(producer_id, None)
        else:
            epochs: dict = runs.setdefault(producer_id, {})
            seen = epochs.get(row[at + _PRODUCER_EPOCH], 0)
            if seen == _BATCHES_KEPT:
                continue
            epochs[row[at + _PRODUCER_EPOCH]] = seen + 1
        kept[found] = index
        found += 1
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = found - 1
    while low < high:
        kept[low], kept[high] = kept[high], kept[low]
        low += 1
        high -= 1
    return found


def rows_in_order(rows, count: cython.Py_ssize_t, expected: cython.longlong):
    row: cython.longlong[::1] = rows
    if count < 0 or count > len(rows) // 16:
        raise ValueError("rows are too short")
    previous: cython.longlong = expected - 1
    index: cython.Py_ssize_t
    for index in range(count):
        if row[index * _ROW + _BASE_OFFSET] <= previous:
            return index
        previous = row[index * _ROW + _LAST_OFFSET]
    return count


def epoch_rows(rows, count: cython.Py_ssize_t, latest: cython.longlong, keep):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // 16 or count > len(keep):
        raise ValueError("rows or keep are too short")
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(count):
        if row[index * _ROW + _LEADER_EPOCH] != latest:
            latest = row[index * _ROW + _LEADER_EPOCH]
            kept[found] = index
            found += 1
    return found
