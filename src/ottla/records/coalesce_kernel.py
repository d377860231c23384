# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checks small batches that came one after another for one log, and lays them side by side, ready to be written.

coalesce_kernel.pyi has the contract. A batch about which anything is special ends the run: it is for validation.py,
which also knows how to complain.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.kernel import scan_one
    from cython.cimports.ottla.records.numbers import LLONG_MAX, copy_bytes, put_number
    from cython.cimports.ottla.records.record_kernel import walk
else:
    from ottla.records import columns as col
    from ottla.records.kernel import scan_one
    from ottla.records.numbers import LLONG_MAX, copy_bytes, put_number
    from ottla.records.record_kernel import walk

PLACE = 4
CORRELATION_ID, RECORDS, SIZE, STOP = range(4)

_CHECK_CRC = cython.declare(cython.int, 1)
_PLACE = cython.declare(cython.Py_ssize_t, PLACE)
_RECORDS = cython.declare(cython.Py_ssize_t, RECORDS)
_SIZE = cython.declare(cython.Py_ssize_t, SIZE)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _follows(row: cython.longlong[::1], to: cython.Py_ssize_t) -> cython.bint:
    """Whether a batch continues what the producer of the one before it sent; most have no producer id."""
    if row[to + col.PRODUCER_ID] < 0:
        return to == 0 or row[to - col.ROW + col.PRODUCER_ID] < 0
    # No sequence, or one that starts anew at 0.
    if not 0 <= row[to + col.BASE_SEQUENCE] <= col.INT32_MAX - row[to + col.COUNT]:
        return False
    if to == 0:
        return True
    before: cython.Py_ssize_t = to - col.ROW
    return (
        row[to + col.PRODUCER_ID] == row[before + col.PRODUCER_ID]
        and row[to + col.PRODUCER_EPOCH] == row[before + col.PRODUCER_EPOCH]
        and row[to + col.BASE_SEQUENCE] == row[before + col.BASE_SEQUENCE] + row[before + col.COUNT]
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_plain(row: cython.longlong[::1], to: cython.Py_ssize_t, next_offset: cython.longlong) -> cython.bint:
    """Of magic 2, nothing set in the attributes, offsets from 0 on, each of them there."""
    return (
        row[to + col.MAGIC] == 2
        and row[to + col.ATTRIBUTES] == 0
        and row[to + col.BASE_OFFSET] == 0
        and row[to + col.COUNT] >= 1
        and row[to + col.COUNT] == row[to + col.LAST_DELTA] + 1
        and row[to + col.LAST_DELTA] < LLONG_MAX - next_offset
    )


def coalesce(
    buf,
    places,
    count: cython.Py_ssize_t,
    next_offset: cython.longlong,
    leader_epoch: cython.longlong,
    max_size: cython.longlong,
    keys_needed: cython.bint,
    out,
    rows,
):
    view: cython.const[cython.uchar][::1] = buf
    place: cython.longlong[::1] = places
    target: cython.uchar[::1] = out
    row: cython.longlong[::1] = rows
    if count < 0 or count * _PLACE > len(places) or count * col.ROW > len(rows):
        raise ValueError("places or rows are too short")
    size: cython.Py_ssize_t = 0
    taken: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t
    length: cython.Py_ssize_t
    most: cython.Py_ssize_t
    status: cython.int
    _unused: cython.longlong
    lowest: cython.longlong
    highest: cython.longlong
    null_keys: cython.longlong
    earliest: cython.longlong = LLONG_MAX
    latest: cython.longlong = -1
    latest_offset: cython.longlong = next_offset
    last_offset: cython.longlong = -1
    while taken < count:
        at = cython.cast(cython.Py_ssize_t, place[taken * _PLACE + _RECORDS])
        length = cython.cast(cython.Py_ssize_t, place[taken * _PLACE + _SIZE])
        to = taken * col.ROW
        most = min(len(view) - at, len(target) - size, max_size)
        if at < 0 or length < col.HEADER_SIZE or length > most:
            break
        status = scan_one(view, at, at + length, row, to, _CHECK_CRC)
        if status != col.OK or row[to + col.SIZE] != length or not _is_plain(row, to, next_offset):
            break
        status, _unused, lowest, highest, _unused, null_keys = walk(
            view, at + col.HEADER_SIZE, at + length, row[to + col.COUNT], row[to + col.BASE_TIMESTAMP], True,
            row[to + col.LAST_DELTA],
        )  # fmt: skip
        if (
            status != col.OK
            or highest != row[to + col.MAX_TIMESTAMP]
            or (null_keys and keys_needed)
            or not _follows(row, to)
        ):
            break
        copy_bytes(view, at, length, target, size)
        put_number(target, size, next_offset, 8)
        put_number(target, size + 12, leader_epoch, 4)
        last_offset = next_offset + row[to + col.LAST_DELTA]
        row[to + col.POSITION] = size
        row[to + col.BASE_OFFSET] = next_offset
        row[to + col.LAST_OFFSET] = last_offset
        row[to + col.LEADER_EPOCH] = leader_epoch
        row[to + col.NULL_KEYS] = null_keys
        next_offset = last_offset + 1
        size += length
        earliest = min(earliest, lowest)
        if highest > latest:
            latest = highest
            latest_offset = last_offset
        taken += 1
    return taken, size, last_offset, earliest, latest, latest_offset
