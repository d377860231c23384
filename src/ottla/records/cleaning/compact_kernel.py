# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What stays of each batch when a log is cleaned, written as a new batch.

Which record is the last of its key says offset_map_kernel.py. compact_kernel.pyi has the contracts, records/kernel.py
the rules that keep both ways of running the same.
"""

from __future__ import annotations

import cython

from ottla.records.kernel import checksum

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.cleaning.offset_map_kernel import OffsetMap, check_batches, is_plain
    from cython.cimports.ottla.records.varint_kernel import overflows, varint_size, zigzag
else:
    from ottla.records import columns as col
    from ottla.records.cleaning.offset_map_kernel import OffsetMap, check_batches, is_plain
    from ottla.records.varints import overflows, varint_size, zigzag

FILTER, FILTER_OR_EMPTY, EMPTY, DROP, MARK, COPY = range(6)
DONE, PACKED, FULL, NO_ROOM, BAD = range(5)
# A new time delta takes up to 9 bytes more than the old one, and its record's length one more.
GROWTH_BYTES = 10

_FILTER_OR_EMPTY = cython.declare(cython.int, 1)
_EMPTY = cython.declare(cython.int, 2)
_DROP = cython.declare(cython.int, 3)
_MARK = cython.declare(cython.int, 4)
_COPY = cython.declare(cython.int, 5)

_DONE = cython.declare(cython.int, 0)
_PACKED = cython.declare(cython.int, 1)
_NO_ROOM = cython.declare(cython.int, 3)
_BAD = cython.declare(cython.int, 4)
_TOO_FAR = cython.declare(cython.int, 5)  # a timestamp cannot be told relative to the delete horizon

# A row of scan() and its columns, as records/kernel.py has them.

_LOG_APPEND_TIME = cython.declare(cython.longlong, 0x08)
_TRANSACTIONAL_OR_CONTROL = cython.declare(cython.longlong, 0x30)
_DELETE_HORIZON = cython.declare(cython.longlong, 0x40)
_KEPT_WHEN_EMPTY = cython.declare(cython.longlong, 0x38)

_HEADER = cython.declare(cython.Py_ssize_t, 61)
_GROWTH = cython.declare(cython.Py_ssize_t, 10)

_INT64_MIN = cython.declare(cython.longlong, -0x7FFFFFFFFFFFFFFF - 1)

# What ahead_kernel.py says of a record that is kept whoever has its key, or as the last with it.
_AHEAD = cython.declare(cython.Py_ssize_t, 64)
_OUT_OF_RANGE = cython.declare(cython.longlong, 0)
_KEYED = cython.declare(cython.longlong, 2)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    view: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy [start, end) to `to`; the position after it there."""
    if cython.compiled:
        index: cython.Py_ssize_t
        for index in range(end - start):
            out[to + index] = view[start + index]
    else:
        out[to : to + end - start] = view[start:end]
    return to + end - start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong, size: cython.int
) -> cython.Py_ssize_t:
    """A big-endian number of `size` bytes; the position after it."""
    index: cython.Py_ssize_t = at + size
    while index > at:
        index -= 1
        out[index] = value & 0xFF
        value >>= 8
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    bits: cython.ulonglong = zigzag(value)
    while bits >= 0x80:
        out[at] = bits & 0x7F | 0x80
        bits >>= 7
        at += 1
    out[at] = bits & 0x7F
    return at + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_record(
    view: cython.const[cython.uchar][::1],
    body: cython.Py_ssize_t,
    timed: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    time_delta: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """A record with another time delta: attributes from `body`, and all from `timed` on."""
    to = _put_varint(out, to, 1 + varint_size(time_delta) + stop - timed)
    to = _copy(view, body, body + 1, out, to)
    to = _put_varint(out, to, time_delta)
    return _copy(view, timed, stop, out, to)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_empty(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    attributes: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The batch at `at` without records: what it says of its producer and its offsets stays."""
    _copy(view, at, at + _HEADER, out, to)
    _put(out, to + 8, _HEADER - 12, 4)
    _put(out, to + 21, attributes & _KEPT_WHEN_EMPTY, 2)
    _put(out, to + 27, -1, 8)
    _put(out, to + 57, 0, 4)
    return to + _HEADER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_header(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    attributes: cython.longlong,
    base_timestamp: cython.longlong,
    max_timestamp: cython.longlong,
    count: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.int:
    """The header of the batch at `at` for the records of it that are written, up to `stop`."""
    _copy(view, at, at + _HEADER, out, to)
    _put(out, to + 8, stop - to - 12, 4)
    _put(out, to + 21, attributes, 2)
    _put(out, to + 27, base_timestamp, 8)
    if not attributes & _LOG_APPEND_TIME:
        _put(out, to + 35, max_timestamp, 8)
    _put(out, to + 57, count, 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.int,  # DONE, BAD or TOO_FAR
        cython.Py_ssize_t,  # position in `out` after what was written
        cython.longlong,  # records kept
        cython.longlong,  # tombstones among them
        cython.longlong,  # their largest timestamp
    )
)
def _filter(
    offset_map: OffsetMap,
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    row: cython.longlong[::1],
    column: cython.Py_ssize_t,
    latest: cython.longlong,
    keep_deletes: cython.bint,
    horizon: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
):
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
    highest: cython.longlong = _INT64_MIN
    at += _HEADER
    run: cython.Py_ssize_t = at  # kept records from here on are not copied yet
    read: cython.longlong[::1] = offset_map.ahead.rows
    while count > 0:
        some = min(count, _AHEAD)
        at = offset_map.read_ahead(view, at, end, some, base_offset, base_timestamp, _INT64_MIN, latest)
        if at < 0:
            return _BAD, to, 0, 0, 0
        offset_map.look_up(some)
        for index in range(some):
            one = index * col.AHEAD_ROW
            if read[one + col.AHEAD_KIND] != _OUT_OF_RANGE and (
                read[one + col.AHEAD_KIND] != _KEYED
                or (read[one + col.AHEAD_VALUE_SIZE] < 0 and not keep_deletes)
            ):
                to = _copy(view, run, read[one + col.AHEAD_START], out, to)
                run = read[one + col.AHEAD_END]
                continue
            timestamp = read[one + col.AHEAD_TIMESTAMP]
            kept += 1
            tombstones += read[one + col.AHEAD_VALUE_SIZE] < 0
            if timestamp > highest:
                highest = timestamp
            if horizon >= 0:
                if overflows(timestamp, -horizon):
                    return _TOO_FAR, to, 0, 0, 0
                run = read[one + col.AHEAD_END]
                to = _put_record(
                    view, read[one + col.AHEAD_BODY], read[one + col.AHEAD_TIMED], run, timestamp - horizon, out, to
                )  # fmt: skip
        count -= some
    if at != end:
        return _BAD, to, 0, 0, 0
    return _DONE, _copy(view, run, at, out, to), kept, tombstones, highest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.bint))
def _clean_batch(
    offset_map: OffsetMap,
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    row: cython.longlong[::1],
    column: cython.Py_ssize_t,
    action: cython.int,
    latest: cython.longlong,
    now_ms: cython.longlong,
    horizon: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
):
    """Write what stays of one batch: (status, position in `out` after it, whether its CRC must be made anew)."""
    base_timestamp: cython.longlong = row[column + col.BASE_TIMESTAMP]
    count: cython.longlong = row[column + col.COUNT]
    attributes: cython.longlong = row[column + col.ATTRIBUTES]
    marked: cython.bint = (attributes & _DELETE_HORIZON) != 0
    deletes: cython.bint = not marked or now_ms < base_timestamp
    body: cython.Py_ssize_t = to + _HEADER
    status: cython.int = _DONE
    stop: cython.Py_ssize_t = to
    kept: cython.longlong = 0
    tombstones: cython.longlong = 0
    highest: cython.longlong = -1
    if action == _COPY:
        return _DONE, _copy(view, at, at + row[column + col.SIZE], out, to), False
    if action == _MARK:
        latest = -1
    if action != _EMPTY:
        status, stop, kept, tombstones, highest = _filter(
            offset_map, view, at, row, column, latest, deletes, -1, out, body
        )
        if status != _DONE:
            return status, to, False
    if kept == 0:
        if action != _EMPTY and action != _FILTER_OR_EMPTY:
            return _DONE, to, False
        return _DONE, _put_empty(view, at, attributes, out, to), True
    if not marked and (tombstones > 0 or action == _MARK):
        status, stop, kept, tombstones, highest = _filter(
            offset_map, view, at, row, column, latest, deletes, horizon, out, body
        )
        marked = status == _DONE
        if not marked:  # it must do without a horizon
            status, stop, kept, tombstones, highest = _filter(
                offset_map, view, at, row, column, latest, deletes, -1, out, body
            )
    if marked and not attributes & _DELETE_HORIZON:
        attributes |= _DELETE_HORIZON
        base_timestamp = horizon
    elif kept == count:
        _copy(view, at, at + _HEADER, out, to)
        return _DONE, stop, False
    _put_header(view, at, attributes, base_timestamp, highest, kept, out, to, stop)
    return _DONE, stop, True


@cython.cfunc
def _seal(out, at: cython.Py_ssize_t):
    """Give the batch at `at` its CRC, whose function is Python's."""
    view: memoryview = memoryview(out)
    written: cython.uchar[::1] = out
    end: cython.Py_ssize_t = at + 12 + int.from_bytes(view[at + 8 : at + 12], "big")
    _put(written, at + 17, checksum(view[at + 21 : end]), 4)


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
    status: cython.int = _DONE
    at: cython.Py_ssize_t
    index: cython.Py_ssize_t
    before: cython.Py_ssize_t
    changed: cython.bint
    remade: cython.longlong[::1] = memoryview(bytearray(8 * count + 8)).cast("q")
    remade_count: cython.Py_ssize_t = 0
    with cython.nogil:
        while start < count:
            at = start * col.ROW
            if action[start] != _DROP:
                if action[start] != _COPY and not is_plain(row, at, action[start]):
                    status = _PACKED
                    break
                if room - to < row[at + col.SIZE] + _GROWTH * max(row[at + col.COUNT], 0):
                    status = _NO_ROOM
                    break
                before = to
                status, to, changed = _clean_batch(
                    offset_map, view, row[at + col.POSITION] - shift, row, at, action[start], latest, now_ms,
                    horizon_ms, written, to,
                )  # fmt: skip
                if status != _DONE:
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
            and row[index * col.ROW + col.ATTRIBUTES] & _TRANSACTIONAL_OR_CONTROL
        ) or (low < len(offsets) and wanted[low] == last_offset):
            kept[found] = index
            found += 1
    return found
