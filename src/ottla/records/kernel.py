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
    from cython.cimports.ottla.records.numbers import (
        LLONG_MAX,
        read_int16,
        read_int32,
        read_int64,
        read_uint32,
    )
    from cython.cimports.ottla.records.record_kernel import check_bounds, walk, walk_records
else:
    from ottla.records import columns as col
    from ottla.records.numbers import LLONG_MAX, read_int16, read_int32, read_int64, read_uint32
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

STATUS_MEANING = {
    col.OK: "ok",
    col.TRUNCATED: "cut short",
    col.BAD_LENGTH: "the length field is too small for its format",
    col.BAD_MAGIC: "unknown format version (magic)",
    col.BAD_CRC: "the checksum does not match",
    col.BAD_ATTRIBUTES: "unknown compression codec",
    col.BAD_COUNT: "the record count does not match",
    col.BAD_OFFSETS: "the offsets make no sense",
    col.BAD_RECORD: "a record is malformed",
}

CHECK_CRC = 1
CHECK_RECORDS = 2

# A CRC of fewer bytes takes microseconds: not worth handing the GIL over.
_RELEASE_GIL_SIZE = cython.declare(cython.longlong, 1 << 20)
_NATIVE = cython.declare(cython.bint, has_crc32c())


def _frame(view, at, end):
    """Whether the fields that all formats share (offset, length, magic) are here and make sense."""
    if end - at < col.OVERHEAD_SIZE:
        return col.TRUNCATED
    length: cython.longlong = read_int32(view, at + 8)
    if length < 14:
        return col.BAD_LENGTH
    if end - at < 17:
        return col.TRUNCATED
    magic: cython.int = view[at + 16]
    if magic > 2:
        return col.BAD_MAGIC
    if (magic == 2 and length < 49) or (magic == 1 and length < 22):
        return col.BAD_LENGTH
    return col.OK


def _read_v2(view, at, row, to):
    """Write the row of the v2 header at `at`, column by column, and check what the CRC does not promise."""
    base_offset: cython.longlong = read_int64(view, at)
    attributes: cython.longlong = read_int16(view, at + 21)
    last_delta: cython.longlong = read_int32(view, at + 23)
    count: cython.longlong = read_int32(view, at + 57)
    good: cython.bint = base_offset >= 0 and last_delta >= 0 and base_offset < LLONG_MAX - last_delta
    row[to + col.POSITION] = at
    row[to + col.SIZE] = read_int32(view, at + 8) + col.OVERHEAD_SIZE
    row[to + col.BASE_OFFSET] = base_offset
    row[to + col.LAST_OFFSET] = base_offset + last_delta if good else -1
    row[to + col.MAX_TIMESTAMP] = read_int64(view, at + 35)
    row[to + col.LEADER_EPOCH] = read_int32(view, at + 12)
    row[to + col.MAGIC] = 2
    row[to + col.ATTRIBUTES] = attributes
    row[to + col.PRODUCER_ID] = read_int64(view, at + 43)
    row[to + col.PRODUCER_EPOCH] = read_int16(view, at + 51)
    row[to + col.BASE_SEQUENCE] = read_int32(view, at + 53)
    row[to + col.COUNT] = count
    row[to + col.BASE_TIMESTAMP] = read_int64(view, at + 27)
    row[to + col.CRC] = read_uint32(view, at + 17)
    row[to + col.LAST_DELTA] = last_delta
    row[to + col.NULL_KEYS] = -1
    if (attributes & col.CODEC_MASK) > 4:
        return col.BAD_ATTRIBUTES
    if count < 0 or count > last_delta + 1:
        return col.BAD_COUNT
    return col.OK if good else col.BAD_OFFSETS


def _read_legacy(view, at, row, to):
    """Write the row of the magic 0 or 1 message at `at`; what a compressed one wraps is not counted."""
    offset: cython.longlong = read_int64(view, at)
    magic: cython.int = view[at + 16]
    attributes: cython.longlong = view[at + 17]
    timestamp: cython.longlong = read_int64(view, at + 18) if magic == 1 else -1
    row[to + col.POSITION] = at
    row[to + col.SIZE] = read_int32(view, at + 8) + col.OVERHEAD_SIZE
    row[to + col.BASE_OFFSET] = offset
    row[to + col.LAST_OFFSET] = offset
    row[to + col.MAX_TIMESTAMP] = timestamp
    row[to + col.LEADER_EPOCH] = -1
    row[to + col.MAGIC] = magic
    row[to + col.ATTRIBUTES] = attributes
    row[to + col.PRODUCER_ID] = -1
    row[to + col.PRODUCER_EPOCH] = -1
    row[to + col.BASE_SEQUENCE] = -1
    row[to + col.COUNT] = -1 if attributes & col.CODEC_MASK else 1
    row[to + col.BASE_TIMESTAMP] = timestamp
    row[to + col.CRC] = read_uint32(view, at + 12)
    row[to + col.LAST_DELTA] = 0
    row[to + col.NULL_KEYS] = -1
    if (attributes & col.CODEC_MASK) > 3:  # zstd came with v2
        return col.BAD_ATTRIBUTES
    return col.OK if 0 <= offset < LLONG_MAX else col.BAD_OFFSETS


def _legacy_null_keys(view, at, end):
    """1 or 0 for the message whose key length is at `at`, or -1 if key and value do not fill it to `end`."""
    size: cython.longlong = read_int32(view, at)
    null_keys: cython.longlong = 1 if size == -1 else 0
    at += 4
    if size < -1 or size > end - at - 4:
        return -1
    if size > 0:
        at += size
    size = read_int32(view, at)
    at += 4
    if size < -1 or (size if size > 0 else 0) != end - at:
        return -1
    return null_keys


def _crc32c(view, at, stop):
    if _NATIVE and at < stop:
        return native_crc32c(cython.address(view[at]), stop - at)
    return _crc32c_with_gil(view, at, stop)


# A function that takes the GIL anywhere takes it once more at its end: so this is not a part of the one above.
def _crc32c_with_gil(view, at, stop):
    crc: cython.longlong
    with cython.gil:
        # Imported here because most processors do without it, and a start has no time for it.
        from crc32c import crc32c

        crc = crc32c(memoryview(view)[at:stop])
    return crc


def checksum(buf):
    view: cython.const[cython.uchar][::1] = buf
    return _crc32c(view, 0, len(view))


def _legacy_crc(view, at, stop):
    crc: cython.longlong
    with cython.gil:
        crc = zlib.crc32(memoryview(view)[at:stop])
    return crc


def scan_one(view, at, end, row, to, flags):
    """Check the batch at `at` and write its row; -1 means an exception."""
    status: cython.int = _frame(view, at, end)
    if status != col.OK:
        if end - at >= col.HEADER_SIZE and view[at + 16] == 2:
            _read_v2(view, at, row, to)
        return status
    size: cython.longlong = read_int32(view, at + 8) + col.OVERHEAD_SIZE
    stop: cython.Py_ssize_t = at + size
    v2: cython.bint = view[at + 16] == 2
    if end - at >= (col.HEADER_SIZE if v2 else 26):
        status = _read_v2(view, at, row, to) if v2 else _read_legacy(view, at, row, to)
    if size > end - at:
        return col.TRUNCATED
    if flags & 1:
        crc: cython.longlong = _crc32c(view, at + 21, stop) if v2 else _legacy_crc(view, at + 16, stop)
        if crc != row[to + col.CRC]:
            return col.BAD_CRC
    if status != col.OK or not flags & 2 or row[to + col.ATTRIBUTES] & col.CODEC_MASK:
        return status
    if v2:
        _unused: cython.longlong
        null_keys: cython.longlong
        status, _unused, _unused, _unused, _unused, null_keys = walk(
            view, at + col.HEADER_SIZE, stop, row[to + col.COUNT], row[to + col.BASE_TIMESTAMP], False,
            row[to + col.LAST_DELTA],
        )  # fmt: skip
        row[to + col.NULL_KEYS] = null_keys
        return status
    row[to + col.NULL_KEYS] = _legacy_null_keys(view, at + (26 if row[to + col.MAGIC] == 1 else 18), stop)
    return col.BAD_RECORD if row[to + col.NULL_KEYS] < 0 else col.OK


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
    status: cython.int = col.OK
    with cython.nogil:
        while start < end and written < room:
            status = scan_one(view, start, end, row, written * col.ROW, flags)
            if status != col.OK:
                break
            start += row[written * col.ROW + col.SIZE]
            row[written * col.ROW] += shift
            written += 1
    return written, start, status


def check_batch(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(start, end, len(buf))
    status: cython.int = _frame(view, start, end)
    if status == col.OK and view[start + 16] != 2:
        status = col.BAD_MAGIC
    if end - start < col.HEADER_SIZE or (status != col.OK and status != col.BAD_LENGTH):
        return (status or col.TRUNCATED, 0, -1, 0, 0, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 0)
    size: cython.longlong = read_int32(view, start + 8) + col.OVERHEAD_SIZE
    attributes: cython.longlong = read_int16(view, start + 21)
    last_delta: cython.longlong = read_int32(view, start + 23)
    base_offset: cython.longlong = read_int64(view, start)
    base_timestamp: cython.longlong = read_int64(view, start + 27)
    count: cython.longlong = read_int32(view, start + 57)
    bad_index: cython.longlong = -1
    lowest: cython.longlong = -1
    highest: cython.longlong = -1
    highest_index: cython.longlong = -1
    null_keys: cython.longlong = 0
    if status == col.OK and size > end - start:
        status = col.TRUNCATED
    if status == col.OK:
        crc: cython.longlong
        if size < _RELEASE_GIL_SIZE:
            crc = _crc32c(view, start + 21, start + size)
        else:
            with cython.nogil:
                crc = _crc32c(view, start + 21, start + size)
        if crc != read_uint32(view, start + 17):
            status = col.BAD_CRC
        elif (attributes & col.CODEC_MASK) > 4:
            status = col.BAD_ATTRIBUTES
        elif count < 1 or count != last_delta + 1:
            status = col.BAD_COUNT
        elif base_offset < 0 or base_offset >= LLONG_MAX - last_delta:
            status = col.BAD_OFFSETS
        elif not attributes & col.CODEC_MASK:
            status, bad_index, lowest, highest, highest_index, null_keys = walk_records(
                view, start + col.HEADER_SIZE, start + size, count, base_timestamp, True, last_delta
            )
    return (
        status,
        size,
        base_offset,
        attributes,
        last_delta,
        base_timestamp,
        read_int64(view, start + 35),
        read_int64(view, start + 43),
        read_int16(view, start + 51),
        read_int32(view, start + 53),
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


def _find_batch(view, at, end, offset):
    base_offset: cython.longlong
    last_delta: cython.longlong
    size: cython.longlong
    status: cython.int
    while at < end:
        status = _frame(view, at, end)
        if status != col.OK:
            return status, at, 0, -1, -1
        base_offset = read_int64(view, at)
        size = read_int32(view, at + 8) + col.OVERHEAD_SIZE
        last_delta = 0
        if view[at + 16] == 2:
            if end - at < 27:
                return col.TRUNCATED, at, 0, -1, -1
            last_delta = read_int32(view, at + 23)
        if base_offset < 0 or last_delta < 0 or base_offset >= LLONG_MAX - last_delta:
            return col.BAD_OFFSETS, at, size, base_offset, -1
        if base_offset + last_delta >= offset:
            return col.OK, at, size, base_offset, base_offset + last_delta
        at += size
    return col.TRUNCATED, at, 0, -1, -1
