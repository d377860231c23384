# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over batches and records, compiled where there is a C compiler and interpreted where there is none.

kernel.pyi has the contracts. Three rules keep both ways the same and safe:

- every position is checked against the end before the byte there is read;
- no sum can leave 64 bits: lengths have 32, and a timestamp is compared before it is added to;
- what a loop without the GIL needs is a C number; Python sees its twin without the underscore.
"""

from __future__ import annotations

import warnings
import zlib

import cython
from crc32c import crc32c

from ottla.records.index_kernel import epoch_rows, index_floor, index_rows, producer_rows, rows_in_order

__all__ = ["epoch_rows", "index_floor", "index_rows", "producer_rows", "rows_in_order"]

COMPILED = cython.compiled
if not COMPILED:
    warnings.warn(
        "ottla's record kernel runs interpreted, about 100 times slower than compiled. "
        "Install a C compiler and Python's headers, then reinstall: pip install --force-reinstall ottla",
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

ROW = 16
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP, LEADER_EPOCH, MAGIC, ATTRIBUTES = range(8)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT, BASE_TIMESTAMP, CRC, LAST_DELTA, NULL_KEYS = range(8, 16)

CHECK_CRC = 1
CHECK_RECORDS = 2

REC_ROW = 10
REC_OFFSET, REC_TIMESTAMP, REC_KEY, REC_KEY_SIZE, REC_VALUE = range(5)
REC_VALUE_SIZE, REC_HEADERS, REC_HEADER_COUNT, REC_START, REC_END = range(5, 10)

# A literal past 32 bits would be a Python object in the loops.
_UINT32_MAX = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_INT32_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
_SIGN = cython.declare(cython.longlong, 0x80000000)
_INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_INT64_MIN = cython.declare(cython.longlong, -0x7FFFFFFFFFFFFFFF - 1)

# Bytes before the records, and before what the length field counts.
_HEADER = cython.declare(cython.Py_ssize_t, 61)
_OVERHEAD = cython.declare(cython.Py_ssize_t, 12)
# A walk over fewer bytes takes microseconds: not worth handing the GIL over.
_RELEASE_GIL = cython.declare(cython.Py_ssize_t, 65536)


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
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varint(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """A zigzag int32 of at most 5 bytes: (value, position after it), or position -1 if it is cut, too long or too big."""
    bits: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end and shift <= 28:
        byte = view[at]
        at += 1
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            if bits > _UINT32_MAX:
                break
            return _unzigzag(bits), at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varlong(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """A zigzag int64 of at most 10 bytes: (value, position after it), or position -1 if it is cut, too long or too big."""
    bits: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end and shift <= 63:
        byte = view[at]
        at += 1
        if shift == 63 and byte > 1:
            break
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            return _unzigzag(bits), at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unzigzag(bits: cython.ulonglong) -> cython.longlong:
    half: cython.longlong = bits >> 1
    sign: cython.longlong = bits & 1
    return half ^ -sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    """Whether base + delta leaves 64 bits."""
    return base > _INT64_MAX - delta if delta > 0 else base < _INT64_MIN - delta


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.int,  # status: OK, TRUNCATED if it ends past `end`, BAD_RECORD
        cython.Py_ssize_t,  # position after the record
        cython.longlong,  # timestamp delta
        cython.longlong,  # offset delta
        cython.Py_ssize_t,  # key position
        cython.longlong,  # key size, -1 for null
        cython.Py_ssize_t,  # value position
        cython.longlong,  # value size, -1 for null
        cython.Py_ssize_t,  # first header's position
        cython.longlong,  # header count
    )
)
def _record(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Read the record at `at`: all of its lengths are checked, down to the last header."""
    start: cython.Py_ssize_t = at
    size: cython.longlong
    time_delta: cython.longlong
    offset_delta: cython.longlong
    size, at = _varint(view, at, end)
    if at < 0:  # five bytes decide; with fewer, more may come
        return (_TRUNCATED if end - start < 5 else _BAD_RECORD), start, 0, 0, 0, 0, 0, 0, 0, 0
    if size < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    if size > end - at:
        return _TRUNCATED, start, 0, 0, 0, 0, 0, 0, 0, 0
    stop: cython.Py_ssize_t = at + size
    at += 1  # the attributes byte has no use yet; if even that is missing, the next read fails
    time_delta, at = _varlong(view, at, stop)
    if at < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    offset_delta, at = _varint(view, at, stop)
    if at < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    key_size: cython.longlong
    key_at: cython.Py_ssize_t
    key_size, key_at, at = _field(view, at, stop)
    if at < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    value_size: cython.longlong
    value_at: cython.Py_ssize_t
    value_size, value_at, at = _field(view, at, stop)
    if at < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    header_count: cython.longlong
    header_count, at = _varint(view, at, stop)
    if at < 0 or header_count < 0:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    headers_at: cython.Py_ssize_t = at
    if header_count > 0:
        at = _skip_headers(view, at, stop, header_count)
    if at != stop:
        return _BAD_RECORD, start, 0, 0, 0, 0, 0, 0, 0, 0
    return (
        _OK,
        stop,
        time_delta,
        offset_delta,
        key_at,
        key_size,
        value_at,
        value_size,
        headers_at,
        header_count,
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t, cython.Py_ssize_t))
def _field(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, stop: cython.Py_ssize_t):
    """Bytes behind their length: (size or -1 for null, position, position after), or position after -1 if they do not fit."""
    size: cython.longlong
    size, at = _varint(view, at, stop)
    if at < 0 or size < -1 or size > stop - at:
        return 0, 0, -1
    return size, at, at + (size if size > 0 else 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skip_headers(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.Py_ssize_t:
    """The position after `count` headers, or -1."""
    size: cython.longlong
    start: cython.Py_ssize_t
    while count > 0:
        size, start, at = _field(view, at, stop)
        if at < 0 or size < 0:  # a header has a key, if an empty one
            return -1
        size, start, at = _field(view, at, stop)
        if at < 0:
            return -1
        count -= 1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (cython.int, cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.longlong)
)
def _walk(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
    last_delta: cython.longlong,
):
    """check_records() without the GIL; no offset delta may pass `last_delta`."""
    index: cython.longlong
    timestamp: cython.longlong
    time_delta: cython.longlong
    offset_delta: cython.longlong
    previous: cython.longlong = -1
    lowest: cython.longlong = _INT64_MAX
    highest: cython.longlong = _INT64_MIN
    highest_index: cython.longlong = -1
    null_keys: cython.longlong = 0
    status: cython.int
    position: cython.Py_ssize_t
    key_size: cython.longlong
    value_size: cython.longlong
    headers: cython.longlong
    index = 0
    while index < count:
        if at >= end:
            return _BAD_COUNT, -1, -1, -1, -1, 0
        status, at, time_delta, offset_delta, position, key_size, position, value_size, position, headers = (
            _record(view, at, end)
        )
        if status != _OK:  # the whole batch is here, so a record that ends past it is bad, not cut
            return _BAD_RECORD, index, -1, -1, -1, 0
        if (offset_delta != index) if dense else (offset_delta <= previous or offset_delta > last_delta):
            return _BAD_OFFSETS, index, -1, -1, -1, 0
        previous = offset_delta
        if _overflows(base_timestamp, time_delta):
            return _BAD_RECORD, index, -1, -1, -1, 0
        timestamp = base_timestamp + time_delta
        if timestamp < lowest:
            lowest = timestamp
        if timestamp > highest:
            highest = timestamp
            highest_index = index
        if key_size < 0:
            null_keys += 1
        index += 1
    if at != end or count < 0:
        return _BAD_COUNT, -1, -1, -1, -1, 0
    if count == 0:
        return _OK, -1, -1, -1, -1, 0
    return _OK, -1, lowest, highest, highest_index, null_keys


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(
    (cython.int, cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.longlong)
)
def _check_records(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
    last_delta: cython.longlong,
):
    result = cython.declare(
        (cython.int, cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.longlong)
    )
    if end - at < _RELEASE_GIL:
        return _walk(view, at, end, count, base_timestamp, dense, last_delta)
    with cython.nogil:
        result = _walk(view, at, end, count, base_timestamp, dense, last_delta)
    return result


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
    """Write the row of the v2 header at `at`, in the order of the columns, and check what the CRC cannot promise."""
    base_offset: cython.longlong = _int64(view, at)
    attributes: cython.longlong = _int16(view, at + 21)
    last_delta: cython.longlong = _int32(view, at + 23)
    count: cython.longlong = _int32(view, at + 57)
    good: cython.bint = base_offset >= 0 and last_delta >= 0 and base_offset <= _INT64_MAX - last_delta
    row[to] = at
    row[to + 1] = _int32(view, at + 8) + _OVERHEAD
    row[to + 2] = base_offset
    row[to + 3] = base_offset + last_delta if good else -1
    row[to + 4] = _int64(view, at + 35)
    row[to + 5] = _int32(view, at + 12)
    row[to + 6] = 2
    row[to + 7] = attributes
    row[to + 8] = _int64(view, at + 43)
    row[to + 9] = _int16(view, at + 51)
    row[to + 10] = _int32(view, at + 53)
    row[to + 11] = count
    row[to + 12] = _int64(view, at + 27)
    row[to + 13] = _uint32(view, at + 17)
    row[to + 14] = last_delta
    row[to + 15] = -1
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
    """Write the row of the magic 0 or 1 message at `at`; a compressed one wraps others, whose number is unknown."""
    offset: cython.longlong = _int64(view, at)
    magic: cython.int = view[at + 16]
    attributes: cython.longlong = view[at + 17]
    timestamp: cython.longlong = _int64(view, at + 18) if magic == 1 else -1
    row[to] = at
    row[to + 1] = _int32(view, at + 8) + _OVERHEAD
    row[to + 2] = offset
    row[to + 3] = offset
    row[to + 4] = timestamp
    row[to + 5] = -1
    row[to + 6] = magic
    row[to + 7] = attributes
    row[to + 8] = -1
    row[to + 9] = -1
    row[to + 10] = -1
    row[to + 11] = -1 if attributes & 7 else 1
    row[to + 12] = timestamp
    row[to + 13] = _uint32(view, at + 12)
    row[to + 14] = 0
    row[to + 15] = -1
    if (attributes & 7) > 3:  # zstd came with v2
        return _BAD_ATTRIBUTES
    return _OK if offset >= 0 else _BAD_OFFSETS


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
def _bounds(start: cython.Py_ssize_t, end: cython.Py_ssize_t, size: cython.Py_ssize_t):
    if start < 0 or start > end or end > size:
        raise ValueError(f"[{start}, {end}) does not lie within the {size} bytes of the buffer")


@cython.cfunc
def _scan_one(
    source: memoryview,
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
        crc: cython.longlong = crc32c(source[at + 21 : stop]) if v2 else zlib.crc32(source[at + 16 : stop])
        if crc != row[to + 13]:
            return _BAD_CRC
    if status != _OK or not flags & 2 or row[to + 7] & 7:
        return status
    if v2:
        result = _check_records(view, at + _HEADER, stop, row[to + 11], row[to + 12], False, row[to + 14])
        row[to + 15] = result[5]
        return result[0]
    row[to + 15] = _legacy_null_keys(view, at + (26 if row[to + 6] == 1 else 18), stop)
    return _BAD_RECORD if row[to + 15] < 0 else _OK


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
    _bounds(start, end, len(buf))
    source: memoryview = memoryview(buf)
    room: cython.Py_ssize_t = len(rows) // 16
    written: cython.Py_ssize_t = 0
    status: cython.int = _OK
    while start < end and written < room:
        status = _scan_one(source, view, start, end, row, written * 16, flags)
        if status != _OK:
            break
        start += row[written * 16 + 1]
        row[written * 16] += shift
        written += 1
    return written, start, status


def check_batch(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    view: cython.const[cython.uchar][::1] = buf
    _bounds(start, end, len(buf))
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
        crc: cython.longlong = crc32c(memoryview(buf)[start + 21 : start + size])
        if crc != _uint32(view, start + 17):
            status = _BAD_CRC
        elif (attributes & 7) > 4:
            status = _BAD_ATTRIBUTES
        elif base_offset < 0 or last_delta < 0 or base_offset > _INT64_MAX - last_delta:
            status = _BAD_OFFSETS
        elif count != last_delta + 1:
            status = _BAD_COUNT
        elif not attributes & 7:
            status, bad_index, lowest, highest, highest_index, null_keys = _check_records(
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


def check_records(
    buf,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
):
    view: cython.const[cython.uchar][::1] = buf
    _bounds(start, end, len(buf))
    return _check_records(view, start, end, count, base_timestamp, dense, _INT32_MAX)


def decode(
    buf,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    rows,
):
    view: cython.const[cython.uchar][::1] = buf
    row: cython.longlong[::1] = rows
    _bounds(start, end, len(buf))
    return _decode(view, start, end, base_offset, base_timestamp, row, len(rows) // 10)


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t, cython.int))
def _decode(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    row: cython.longlong[::1],
    room: cython.Py_ssize_t,
):
    status: cython.int
    stop: cython.Py_ssize_t
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key_at: cython.Py_ssize_t
    key_size: cython.longlong
    value_at: cython.Py_ssize_t
    value_size: cython.longlong
    headers_at: cython.Py_ssize_t
    header_count: cython.longlong
    to: cython.Py_ssize_t = 0
    written: cython.Py_ssize_t = 0
    with cython.nogil:
        while at < end and written < room:
            (
                status,
                stop,
                time_delta,
                offset_delta,
                key_at,
                key_size,
                value_at,
                value_size,
                headers_at,
                header_count,
            ) = _record(view, at, end)
            if status == _OK and (
                _overflows(base_timestamp, time_delta) or _overflows(base_offset, offset_delta)
            ):
                status = _BAD_RECORD
            if status != _OK:
                return written, at, status
            row[to] = base_offset + offset_delta
            row[to + 1] = base_timestamp + time_delta
            row[to + 2] = key_at
            row[to + 3] = key_size
            row[to + 4] = value_at
            row[to + 5] = value_size
            row[to + 6] = headers_at
            row[to + 7] = header_count
            row[to + 8] = at
            row[to + 9] = stop
            to += 10
            written += 1
            at = stop
    return written, at, _OK


def headers(buf, position: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    _bounds(position, end, len(buf))
    found: list = []
    key_size: cython.longlong
    key_at: cython.Py_ssize_t
    value_size: cython.longlong
    value_at: cython.Py_ssize_t
    while count > 0:
        key_size, key_at, position = _field(view, position, end)
        if position >= 0 and key_size >= 0:
            value_size, value_at, position = _field(view, position, end)
        if position < 0 or key_size < 0:
            raise ValueError("malformed headers: the record was not located by decode()")
        key = bytes(buf[key_at : key_at + key_size])
        found.append((key, None if value_size < 0 else bytes(buf[value_at : value_at + value_size])))
        count -= 1
    return found


def find_batch(buf, start: cython.Py_ssize_t, end: cython.Py_ssize_t, offset: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    _bounds(start, end, len(buf))
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
        if base_offset < 0 or last_delta < 0 or base_offset > _INT64_MAX - last_delta:
            return _BAD_OFFSETS, at, size, base_offset, -1
        if base_offset + last_delta >= offset:
            return _OK, at, size, base_offset, base_offset + last_delta
        at += size
    return _TRUNCATED, at, 0, -1, -1
