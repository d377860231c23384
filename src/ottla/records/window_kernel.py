# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checks the records of a produced batch window by window, so that little of what is unpacked is in memory at a time.

window_kernel.pyi has the contract.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.numbers import LLONG_MAX, LLONG_MIN
    from cython.cimports.ottla.records.record_kernel import check_bounds, read_record
else:
    from ottla.records import columns as col
    from ottla.records.numbers import LLONG_MAX, LLONG_MIN
    from ottla.records.record_kernel import check_bounds, read_record


STATE = 4
SEEN, LEAST_DELTA, MOST_DELTA, NULL_KEYS = range(4)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t))
def _check(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    state: cython.longlong[::1],
):
    after: cython.Py_ssize_t
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    _position: cython.Py_ssize_t
    _size: cython.longlong
    lowest: cython.longlong = LLONG_MIN - base_timestamp if base_timestamp < 0 else LLONG_MIN
    highest: cython.longlong = LLONG_MAX - base_timestamp if base_timestamp > 0 else LLONG_MAX
    while at < end:
        if state[0] >= count:
            return col.BAD_COUNT, at
        after, time_delta, offset_delta, _position, key_size, _position, _size, _position, _size = (
            read_record(view, at, end)
        )
        if after == -col.TRUNCATED:
            return 0, at
        if after < 0 or time_delta < lowest or time_delta > highest:
            return col.BAD_RECORD, at
        if offset_delta != state[0]:
            return col.BAD_OFFSETS, at
        if time_delta < state[1]:
            state[1] = time_delta
        if time_delta > state[2]:
            state[2] = time_delta
        if key_size < 0:
            state[3] += 1
        state[0] += 1
        at = after
    return 0, at


def check_window(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t, count, base_timestamp, state):
    view: cython.const[cython.uchar][::1] = buf
    kept: cython.longlong[::1] = state
    check_bounds(start, end, len(buf))
    if len(state) < 4:
        raise ValueError("state is too short")
    expected: cython.longlong = count
    base: cython.longlong = base_timestamp
    status: cython.int
    position: cython.Py_ssize_t
    with cython.nogil:
        status, position = _check(view, start, end, expected, base, kept)
    return status, position
