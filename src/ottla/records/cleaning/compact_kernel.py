# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What stays of each batch when a log is cleaned, written as a new batch.

Which record is the last of its key says offset_map_kernel.py. compact_kernel.pyi has the contracts, records/kernel.py
the rules that keep both ways of running the same.
"""

from __future__ import annotations

import cython

from ottla.records.cleaning.codes import *  # noqa: F403 - compact_kernel.pyi names them
from ottla.records.kernel import checksum

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.cleaning import codes as clean
    from cython.cimports.ottla.records.cleaning.offset_map_kernel import OffsetMap, check_batches, is_plain
    from cython.cimports.ottla.records.numbers import (
        LLONG_MIN,
        copy_bytes,
        overflows,
        put_number,
        put_varint,
        varint_size,
    )
else:
    from ottla.records import columns as col
    from ottla.records.cleaning import codes as clean
    from ottla.records.cleaning.offset_map_kernel import OffsetMap, check_batches, is_plain
    from ottla.records.numbers import LLONG_MIN, copy_bytes, overflows, put_number, put_varint, varint_size

# A new time delta takes up to 9 bytes more than the old one, and its record's length one more.
GROWTH_BYTES = 10
_GROWTH = cython.declare(cython.Py_ssize_t, 10)


def _skip_varint(view, at):
    """The position after a number that has been read before."""
    while view[at] >= 0x80:
        at += 1
    return at + 1


def _put_record(view, at, stop, time_delta, out, to):
    """The record at `at` with another time delta."""
    body: cython.Py_ssize_t = _skip_varint(view, at)  # where its attributes are
    timed: cython.Py_ssize_t = _skip_varint(view, body + 1)
    to = put_varint(out, to, 1 + varint_size(time_delta) + stop - timed)
    out[to] = view[body]
    to = put_varint(out, to + 1, time_delta)
    return copy_bytes(view, timed, stop - timed, out, to)


def _put_empty(view, at, attributes, out, to):
    """The batch at `at` without records: what it says of its producer and its offsets stays."""
    copy_bytes(view, at, col.HEADER_SIZE, out, to)
    put_number(out, to + 8, col.HEADER_SIZE - col.OVERHEAD_SIZE, 4)
    put_number(out, to + 21, attributes & (col.LOG_APPEND_TIME | col.TRANSACTIONAL | col.CONTROL), 2)
    put_number(out, to + 27, -1, 8)
    put_number(out, to + 57, 0, 4)
    return to + col.HEADER_SIZE


def _put_header(view, at, attributes, base_timestamp, max_timestamp, count, out, to, stop):
    """The header of the batch at `at` for the records of it that are written, up to `stop`."""
    copy_bytes(view, at, col.HEADER_SIZE, out, to)
    put_number(out, to + 8, stop - to - 12, 4)
    put_number(out, to + 21, attributes, 2)
    put_number(out, to + 27, base_timestamp, 8)
    if not attributes & col.LOG_APPEND_TIME:
        put_number(out, to + 35, max_timestamp, 8)
    put_number(out, to + 57, count, 4)
    return 0


def _filter(offset_map, view, at, row, column, latest, keep_deletes, horizon, out, to):
    """Copy those records of a batch that stay. With a `horizon` (not -1) their times are told relative to it."""
    end: cython.Py_ssize_t = at + row[column + col.SIZE]
    base_offset: cython.longlong = row[column + col.BASE_OFFSET]
    base_timestamp: cython.longlong = row[column + col.BASE_TIMESTAMP]
    count: cython.longlong = row[column + col.COUNT]
    some: cython.Py_ssize_t
    index: cython.Py_ssize_t
    one: cython.Py_ssize_t
    timestamp: cython.longlong
    kept: cython.longlong = 0
    tombstones: cython.longlong = 0
    highest: cython.longlong = LLONG_MIN
    at += col.HEADER_SIZE
    run: cython.Py_ssize_t = at  # kept records from here on are not copied yet
    read: cython.longlong[::1] = offset_map.ahead.rows
    while count > 0:
        some = min(count, clean.READ_AHEAD)
        at = offset_map.read_ahead(view, at, end, some, base_offset, base_timestamp, LLONG_MIN, latest)
        if at < 0:
            return clean.BAD, to, 0, 0, 0
        offset_map.look_up(some)
        for index in range(some):
            one = index * col.AHEAD_ROW
            if read[one + col.AHEAD_KIND] != clean.OUT_OF_RANGE and (
                read[one + col.AHEAD_KIND] != clean.KEYED
                or (read[one + col.AHEAD_VALUE_SIZE] < 0 and not keep_deletes)
            ):
                to = copy_bytes(view, run, read[one + col.AHEAD_START] - run, out, to)
                run = read[one + col.AHEAD_END]
                continue
            timestamp = read[one + col.AHEAD_TIMESTAMP]
            kept += 1
            tombstones += read[one + col.AHEAD_VALUE_SIZE] < 0
            if timestamp > highest:
                highest = timestamp
            if horizon >= 0:
                if overflows(timestamp, -horizon):
                    return clean.TOO_FAR, to, 0, 0, 0
                run = read[one + col.AHEAD_END]
                to = _put_record(view, read[one + col.AHEAD_START], run, timestamp - horizon, out, to)
        count -= some
    if at != end:
        return clean.BAD, to, 0, 0, 0
    return clean.DONE, copy_bytes(view, run, at - run, out, to), kept, tombstones, highest


def _clean_batch(offset_map, view, at, row, column, action, latest, now_ms, horizon, out, to):
    """Write what stays of one batch: (status, position in `out` after it, whether its CRC must be made anew)."""
    base_timestamp: cython.longlong = row[column + col.BASE_TIMESTAMP]
    count: cython.longlong = row[column + col.COUNT]
    attributes: cython.longlong = row[column + col.ATTRIBUTES]
    marked: cython.bint = (attributes & col.DELETE_HORIZON) != 0
    deletes: cython.bint = not marked or now_ms < base_timestamp
    body: cython.Py_ssize_t = to + col.HEADER_SIZE
    status: cython.int = clean.DONE
    stop: cython.Py_ssize_t = to
    kept: cython.longlong = 0
    tombstones: cython.longlong = 0
    highest: cython.longlong = -1
    if action == clean.COPY:
        return clean.DONE, copy_bytes(view, at, row[column + col.SIZE], out, to), False
    if action == clean.MARK:
        latest = -1
    if action != clean.EMPTY:
        status, stop, kept, tombstones, highest = _filter(
            offset_map, view, at, row, column, latest, deletes, -1, out, body
        )
        if status != clean.DONE:
            return status, to, False
    if kept == 0:
        if action != clean.EMPTY and action != clean.FILTER_OR_EMPTY:
            return clean.DONE, to, False
        return clean.DONE, _put_empty(view, at, attributes, out, to), True
    if not marked and (tombstones > 0 or action == clean.MARK):
        status, stop, kept, tombstones, highest = _filter(
            offset_map, view, at, row, column, latest, deletes, horizon, out, body
        )
        marked = status == clean.DONE
        if not marked:  # it must do without a horizon
            status, stop, kept, tombstones, highest = _filter(
                offset_map, view, at, row, column, latest, deletes, -1, out, body
            )
    if marked and not attributes & col.DELETE_HORIZON:
        attributes |= col.DELETE_HORIZON
        base_timestamp = horizon
    elif kept == count:
        copy_bytes(view, at, col.HEADER_SIZE, out, to)
        return clean.DONE, stop, False
    _put_header(view, at, attributes, base_timestamp, highest, kept, out, to, stop)
    return clean.DONE, stop, True


@cython.cfunc
def _seal(out, at: cython.Py_ssize_t):
    """Give the batch at `at` its CRC, whose function is Python's."""
    view: memoryview = memoryview(out)
    written: cython.uchar[::1] = out
    end: cython.Py_ssize_t = at + 12 + int.from_bytes(view[at + 8 : at + 12], "big")
    put_number(written, at + 17, checksum(view[at + 21 : end]), 4)


def filter_rows(
    offset_map: OffsetMap,
    data,
    shift: cython.longlong,
    rows,
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    actions,
    latest: cython.longlong,
    now_ms: cython.longlong,
    horizon_ms: cython.longlong,
    out,
    to: cython.Py_ssize_t,
):
    check_batches(data, shift, rows, start, count, actions)
    view: cython.const[cython.uchar][::1] = data
    row: cython.longlong[::1] = rows
    action: cython.const[cython.uchar][::1] = actions
    written: cython.uchar[::1] = out
    room: cython.Py_ssize_t = len(out)
    if to < 0 or to > room:
        raise ValueError(f"position {to} does not lie within the {room} bytes of the buffer")
    status: cython.int = clean.DONE
    at: cython.Py_ssize_t
    index: cython.Py_ssize_t
    before: cython.Py_ssize_t
    changed: cython.bint
    remade: cython.longlong[::1] = memoryview(bytearray(8 * count + 8)).cast("q")
    remade_count: cython.Py_ssize_t = 0
    with cython.nogil:
        while start < count:
            at = start * col.ROW
            if action[start] != clean.DROP:
                if action[start] != clean.COPY and not is_plain(row, at, action[start]):
                    status = clean.PACKED
                    break
                if room - to < row[at + col.SIZE] + _GROWTH * max(row[at + col.COUNT], 0):
                    status = clean.NO_ROOM
                    break
                before = to
                status, to, changed = _clean_batch(
                    offset_map, view, row[at + col.POSITION] - shift, row, at, action[start], latest, now_ms,
                    horizon_ms, written, to,
                )  # fmt: skip
                if status != clean.DONE:
                    break
                if changed:
                    remade[remade_count] = before
                    remade_count += 1
            start += 1
    for index in range(remade_count):
        _seal(out, remade[index])
    return start, to, status


def special_rows(rows, count: cython.Py_ssize_t, offsets, keep):
    row: cython.longlong[::1] = rows
    wanted: cython.longlong[::1] = offsets
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // col.ROW or count > len(keep):
        raise ValueError("rows or keep are too short")
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    last_offset: cython.longlong
    for index in range(count):
        last_offset = row[index * col.ROW + col.LAST_OFFSET]
        low, high = 0, len(offsets)
        while low < high:
            middle = (low + high) // 2
            if wanted[middle] < last_offset:
                low = middle + 1
            else:
                high = middle
        if (
            row[index * col.ROW + col.MAGIC] == 2
            and row[index * col.ROW + col.ATTRIBUTES] & (col.TRANSACTIONAL | col.CONTROL)
        ) or (low < len(offsets) and wanted[low] == last_offset):
            kept[found] = index
            found += 1
    return found
