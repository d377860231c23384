# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over batches: compiled where there is a C compiler, interpreted where there is none.

The loops over records and over index entries are in record_kernel.py and index_kernel.py; callers import
all of them from here. The .pyi files have the contracts. Three rules keep both ways of running the same,
and safe:

- a position is compared with the end before the byte there is read;
- no sum leaves 64 bits: lengths have 32, and a timestamp or an offset is compared before it is added to;
- what the compiled loops need is a C number; Python has its twin without the underscore.
"""

from __future__ import annotations

import warnings
import zlib

import cython

from ottla.records.columns import *  # noqa: F403 - kernel.pyi names them
from ottla.records.index_kernel import (
    epoch_rows,
    index_floor,
    index_rows,
    producer_rows,
    rows_in_order,
    transaction_rows,
)
from ottla.records.record_kernel import check_records, decode, encode_records, headers

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.crc_kernel import has_crc32c, native_crc32c
    from cython.cimports.ottla.records.record_kernel import check_bounds, walk, walk_records
else:
    from ottla.records import columns as col
    from ottla.records.record_kernel import check_bounds, walk, walk_records

    def has_crc32c():
        return False

    def native_crc32c(data, size):
        raise AssertionError  # nothing says that it is there


__all__ = [
    "check_records",
    "decode",
    "encode_records",
    "epoch_rows",
    "headers",
    "index_floor",
    "index_rows",
    "producer_rows",
    "rows_in_order",
    "transaction_rows",
]

COMPILED = cython.compiled
if not COMPILED:
    warnings.warn(
        "ottla's record kernel runs interpreted, about 100 times slower than compiled. "
        "Install a C compiler and Python's headers, then reinstall: "
        "pip install --force-reinstall --no-cache-dir ottla",
        RuntimeWarning,
        stacklevel=2,
    )

_OK = cython.declare(cython.int, 0)
_TRUNCATED = cython.declare(cython.int, 1)
_BAD_LENGTH = cython.declare(cython.int, 2)
_BAD_MAGIC = cython.declare(cython.int, 3)
_BAD_CRC = cython.declare(cython.int, 4)
_BAD_ATTRIBUTES = cython.declare(cython.int, 5)
_BAD_COUNT = cython.declare(cython.int, 6)
_BAD_OFFSETS = cython.declare(cython.int, 7)
_BAD_RECORD = cython.declare(cython.int, 8)

OK, TRUNCATED, BAD_LENGTH, BAD_MAGIC, BAD_CRC, BAD_ATTRIBUTES, BAD_COUNT, BAD_OFFSETS, BAD_RECORD = range(9)
STATUS_MEANING = {
    OK: "ok",
    TRUNCATED: "cut short",
    BAD_LENGTH: "the length field is too small for its format",
    BAD_MAGIC: "unknown format version (magic)",
    BAD_CRC: "the checksum does not match",
    BAD_ATTRIBUTES: "unknown compression codec",
    BAD_COUNT: "the record count does not match",
    BAD_OFFSETS: "the offsets make no sense",
    BAD_RECORD: "a record is malformed",
}

CHECK_CRC = 1
CHECK_RECORDS = 2

# Literals past 32 bits would be Python objects in the loops.
_SIGN = cython.declare(cython.longlong, 0x80000000)
_INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)

# Bytes before the records of a v2 batch, and before what the length field counts.
_HEADER = cython.declare(cython.Py_ssize_t, 61)
_OVERHEAD = cython.declare(cython.Py_ssize_t, 12)

# A CRC of fewer bytes takes microseconds: not worth handing the GIL over.
_RELEASE_GIL_SIZE = cython.declare(cython.longlong, 1 << 20)
_NATIVE = cython.declare(cython.bint, has_crc32c())


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uint32(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    b0: cython.ulonglong = view[at]
    b1: cython.ulonglong = view[at + 1]
    b2: cython.ulonglong = view[at + 2]
    b3: cython.ulonglong = view[at + 3]
    return b0 << 24 | b1 << 16 | b2 << 8 | b3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int32(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    value: cython.longlong = _uint32(view, at)
    return value - ((value & _SIGN) << 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int16(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    high: cython.longlong = view[at]
    value: cython.longlong = high * 256 + view[at + 1]
    return value - ((value & 0x8000) << 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int64(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    return _int32(view, at) * (_SIGN << 1) + _uint32(view, at + 4)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _frame(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """Whether the fields that all formats share (offset, length, magic) are here and make sense."""
    if end - at < _OVERHEAD:
        return _TRUNCATED
    length: cython.longlong = _int32(view, at + 8)
    if length < 14:
        return _BAD_LENGTH
    if end - at < 17:
        return _TRUNCATED
    magic: cython.int = view[at + 16]
    if magic > 2:
        return _BAD_MAGIC
    if (magic == 2 and length < 49) or (magic == 1 and length < 22):
        return _BAD_LENGTH
    return _OK


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_v2(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    row: cython.longlong[::1],
    to: cython.Py_ssize_t,
) -> cython.int:
    """Write the row of the v2 header at `at`, column by column, and check what the CRC does not promise."""
    base_offset: cython.longlong = _int64(view, at)
    attributes: cython.longlong = _int16(view, at + 21)
    last_delta: cython.longlong = _int32(view, at + 23)
    count: cython.longlong = _int32(view, at + 57)
    good: cython.bint = base_offset >= 0 and last_delta >= 0 and base_offset < _INT64_MAX - last_delta
    row[to + col.POSITION] = at
    row[to + col.SIZE] = _int32(view, at + 8) + _OVERHEAD
    row[to + col.BASE_OFFSET] = base_offset
    row[to + col.LAST_OFFSET] = base_offset + last_delta if good else -1
    row[to + col.MAX_TIMESTAMP] = _int64(view, at + 35)
    row[to + col.LEADER_EPOCH] = _int32(view, at + 12)
    row[to + col.MAGIC] = 2
    row[to + col.ATTRIBUTES] = attributes
    row[to + col.PRODUCER_ID] = _int64(view, at + 43)
    row[to + col.PRODUCER_EPOCH] = _int16(view, at + 51)
    row[to + col.BASE_SEQUENCE] = _int32(view, at + 53)
    row[to + col.COUNT] = count
    row[to + col.BASE_TIMESTAMP] = _int64(view, at + 27)
    row[to + col.CRC] = _uint32(view, at + 17)
    row[to + col.LAST_DELTA] = last_delta
    row[to + col.NULL_KEYS] = -1
    if (attributes & 7) > 4:
        return _BAD_ATTRIBUTES
    if count < 0 or count > last_delta + 1:
        return _BAD_COUNT
    return _OK if good else _BAD_OFFSETS


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_legacy(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    row: cython.longlong[::1],
    to: cython.Py_ssize_t,
) -> cython.int:
    """Write the row of the magic 0 or 1 message at `at`; what a compressed one wraps is not counted."""
    offset: cython.longlong = _int64(view, at)
    magic: cython.int = view[at + 16]
    attributes: cython.longlong = view[at + 17]
    timestamp: cython.longlong = _int64(view, at + 18) if magic == 1 else -1
    row[to + col.POSITION] = at
    row[to + col.SIZE] = _int32(view, at + 8) + _OVERHEAD
    row[to + col.BASE_OFFSET] = offset
    row[to + col.LAST_OFFSET] = offset
    row[to + col.MAX_TIMESTAMP] = timestamp
    row[to + col.LEADER_EPOCH] = -1
    row[to + col.MAGIC] = magic
    row[to + col.ATTRIBUTES] = attributes
    row[to + col.PRODUCER_ID] = -1
    row[to + col.PRODUCER_EPOCH] = -1
    row[to + col.BASE_SEQUENCE] = -1
    row[to + col.COUNT] = -1 if attributes & 7 else 1
    row[to + col.BASE_TIMESTAMP] = timestamp
    row[to + col.CRC] = _uint32(view, at + 12)
    row[to + col.LAST_DELTA] = 0
    row[to + col.NULL_KEYS] = -1
    if (attributes & 7) > 3:  # zstd came with v2
        return _BAD_ATTRIBUTES
    return _OK if 0 <= offset < _INT64_MAX else _BAD_OFFSETS


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _legacy_null_keys(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.longlong:
    """1 or 0 for the message whose key length is at `at`, or -1 if key and value do not fill it to `end`."""
    size: cython.longlong = _int32(view, at)
    null_keys: cython.longlong = 1 if size == -1 else 0
    at += 4
    if size < -1 or size > end - at - 4:
        return -1
    if size > 0:
        at += size
    size = _int32(view, at)
    at += 4
    if size < -1 or (size if size > 0 else 0) != end - at:
        return -1
    return null_keys


@cython.cfunc
@cython.inline
@cython.nogil
def _crc32c(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.longlong:
    if _NATIVE and at < stop:
        return native_crc32c(cython.address(view[at]), stop - at)
    return _crc32c_with_gil(view, at, stop)


# A function that takes the GIL anywhere takes it once more at its end: so this is not a part of the one above.
@cython.cfunc
@cython.nogil
def _crc32c_with_gil(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.longlong:
    crc: cython.longlong
    with cython.gil:
        # Imported here because most processors do without it, and a start has no time for it.
        from crc32c import crc32c

        crc = crc32c(memoryview(view)[at:stop])
    return crc


def checksum(buf):
    view: cython.const[cython.uchar][::1] = buf
    return _crc32c(view, 0, len(view))


@cython.cfunc
@cython.nogil
def _legacy_crc(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.longlong:
    crc: cython.longlong
    with cython.gil:
        crc = zlib.crc32(memoryview(view)[at:stop])
    return crc


@cython.cfunc
@cython.nogil
def scan_one(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    row: cython.longlong[::1],
    to: cython.Py_ssize_t,
    flags: cython.int,
) -> cython.int:
    """Check the batch at `at` and write its row; -1 means an exception."""
    status: cython.int = _frame(view, at, end)
    if status != _OK:
        if end - at >= _HEADER and view[at + 16] == 2:
            _read_v2(view, at, row, to)
        return status
    size: cython.longlong = _int32(view, at + 8) + _OVERHEAD
    stop: cython.Py_ssize_t = at + size
    v2: cython.bint = view[at + 16] == 2
    if end - at >= (_HEADER if v2 else 26):
        status = _read_v2(view, at, row, to) if v2 else _read_legacy(view, at, row, to)
    if size > end - at:
        return _TRUNCATED
    if flags & 1:
        crc: cython.longlong = _crc32c(view, at + 21, stop) if v2 else _legacy_crc(view, at + 16, stop)
        if crc != row[to + col.CRC]:
            return _BAD_CRC
    if status != _OK or not flags & 2 or row[to + col.ATTRIBUTES] & 7:
        return status
    if v2:
        _unused: cython.longlong
        null_keys: cython.longlong
        status, _unused, _unused, _unused, _unused, null_keys = walk(
            view, at + _HEADER, stop, row[to + col.COUNT], row[to + col.BASE_TIMESTAMP], False,
            row[to + col.LAST_DELTA],
        )  # fmt: skip
        row[to + col.NULL_KEYS] = null_keys
        return status
    row[to + col.NULL_KEYS] = _legacy_null_keys(view, at + (26 if row[to + col.MAGIC] == 1 else 18), stop)
    return _BAD_RECORD if row[to + col.NULL_KEYS] < 0 else _OK


def scan(
    buf,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    rows,
    flags: cython.int,
    shift: cython.longlong = 0,
):
    view: cython.const[cython.uchar][::1] = buf
    row: cython.longlong[::1] = rows
    check_bounds(start, end, len(buf))
    room: cython.Py_ssize_t = len(rows) // col.ROW
    written: cython.Py_ssize_t = 0
    status: cython.int = _OK
    with cython.nogil:
        while start < end and written < room:
            status = scan_one(view, start, end, row, written * col.ROW, flags)
            if status != _OK:
                break
            start += row[written * col.ROW + col.SIZE]
            row[written * col.ROW] += shift
            written += 1
    return written, start, status


def check_batch(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(start, end, len(buf))
    status: cython.int = _frame(view, start, end)
    if status == _OK and view[start + 16] != 2:
        status = _BAD_MAGIC
    if end - start < _HEADER or (status != _OK and status != _BAD_LENGTH):
        return (status or _TRUNCATED, 0, -1, 0, 0, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 0)
    size: cython.longlong = _int32(view, start + 8) + _OVERHEAD
    attributes: cython.longlong = _int16(view, start + 21)
    last_delta: cython.longlong = _int32(view, start + 23)
    base_offset: cython.longlong = _int64(view, start)
    base_timestamp: cython.longlong = _int64(view, start + 27)
    count: cython.longlong = _int32(view, start + 57)
    bad_index: cython.longlong = -1
    lowest: cython.longlong = -1
    highest: cython.longlong = -1
    highest_index: cython.longlong = -1
    null_keys: cython.longlong = 0
    if status == _OK and size > end - start:
        status = _TRUNCATED
    if status == _OK:
        crc: cython.longlong
        if size < _RELEASE_GIL_SIZE:
            crc = _crc32c(view, start + 21, start + size)
        else:
            with cython.nogil:
                crc = _crc32c(view, start + 21, start + size)
        if crc != _uint32(view, start + 17):
            status = _BAD_CRC
        elif (attributes & 7) > 4:
            status = _BAD_ATTRIBUTES
        elif count < 1 or count != last_delta + 1:
            status = _BAD_COUNT
        elif base_offset < 0 or base_offset >= _INT64_MAX - last_delta:
            status = _BAD_OFFSETS
        elif not attributes & 7:
            status, bad_index, lowest, highest, highest_index, null_keys = walk_records(
                view, start + _HEADER, start + size, count, base_timestamp, True, last_delta
            )
    return (
        status,
        size,
        base_offset,
        attributes,
        last_delta,
        base_timestamp,
        _int64(view, start + 35),
        _int64(view, start + 43),
        _int16(view, start + 51),
        _int32(view, start + 53),
        count,
        bad_index,
        lowest,
        highest,
        highest_index,
        null_keys,
    )


def find_batch(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t, offset: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(start, end, len(buf))
    return _find_batch(view, start, end, offset)


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.longlong, cython.longlong, cython.longlong))
def _find_batch(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    offset: cython.longlong,
):
    base_offset: cython.longlong
    last_delta: cython.longlong
    size: cython.longlong
    status: cython.int
    while at < end:
        status = _frame(view, at, end)
        if status != _OK:
            return status, at, 0, -1, -1
        base_offset = _int64(view, at)
        size = _int32(view, at + 8) + _OVERHEAD
        last_delta = 0
        if view[at + 16] == 2:
            if end - at < 27:
                return _TRUNCATED, at, 0, -1, -1
            last_delta = _int32(view, at + 23)
        if base_offset < 0 or last_delta < 0 or base_offset >= _INT64_MAX - last_delta:
            return _BAD_OFFSETS, at, size, base_offset, -1
        if base_offset + last_delta >= offset:
            return _OK, at, size, base_offset, base_offset + last_delta
        at += size
    return _TRUNCATED, at, 0, -1, -1
