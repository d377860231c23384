# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over the records of one v2 batch. kernel.py says what rules they keep.

    length varint · attributes i8 · timestamp delta varlong · offset delta varint · key · value ·
    header count varint · headers (key, value)

Keys and values are a varint length (-1 for null, which a header's key may not be) and their bytes. The
length covers exactly what follows it. A read that fails gives the position `_FAR`, past every end.
"""

from __future__ import annotations

import sys

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.varint_kernel import overflows, varint_size, zigzag
else:
    from ottla.records import columns as col
    from ottla.records.varints import overflows, varint_size, zigzag

_TRUNCATED = cython.declare(cython.int, 1)
_BAD_COUNT = cython.declare(cython.int, 6)
_BAD_OFFSETS = cython.declare(cython.int, 7)
_BAD_RECORD = cython.declare(cython.int, 8)

_FAR = cython.declare(cython.Py_ssize_t, sys.maxsize)
# Literals past 32 bits would be Python objects in the loops.
_UINT32_MAX = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_INT32_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
_INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_INT64_MIN = cython.declare(cython.longlong, -_INT64_MAX - 1)
# A walk over fewer bytes takes microseconds: not worth handing the GIL over.
_RELEASE_GIL_SIZE = cython.declare(cython.Py_ssize_t, 65536)


@cython.cfunc
def check_bounds(start: cython.Py_ssize_t, end: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    if start < 0 or start > end or end > size:
        raise ValueError(f"[{start}, {end}) does not lie within the {size} bytes of the buffer")
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unzigzag(bits: cython.ulonglong) -> cython.longlong:
    half: cython.longlong = bits >> 1
    sign: cython.longlong = bits & 1
    return half ^ -sign


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _long_varint(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
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
    return 0, _FAR


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varint(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """A zigzag int32 in at most 5 bytes: (value, position after it)."""
    bits: cython.ulonglong
    byte: cython.ulonglong
    if at < end:  # most numbers in a record take one or two bytes
        bits = view[at]
        if bits < 0x80:
            return _unzigzag(bits), at + 1
        if at + 1 < end:
            byte = view[at + 1]
            if byte < 0x80:
                return _unzigzag(bits + (byte << 7) - 0x80), at + 2
    return _long_varint(view, at, end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _long_varlong(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
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
    return 0, _FAR


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varlong(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """A zigzag int64 in at most 10 bytes: (value, position after it)."""
    bits: cython.ulonglong
    byte: cython.ulonglong
    if at < end:  # most numbers in a record take one or two bytes
        bits = view[at]
        if bits < 0x80:
            return _unzigzag(bits), at + 1
        if at + 1 < end:
            byte = view[at + 1]
            if byte < 0x80:
                return _unzigzag(bits + (byte << 7) - 0x80), at + 2
    return _long_varlong(view, at, end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t, cython.Py_ssize_t))
def read_field(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Bytes after their length: (size, -1 for null; position; position after them)."""
    size: cython.longlong
    size, at = _varint(view, at, end)
    if size < -1 or size > end - at:
        return 0, 0, _FAR
    if size > 0:
        return size, at, at + size
    return size, at, at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skip_headers(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.Py_ssize_t:
    """The position after `count` headers."""
    key_size: cython.longlong
    _size: cython.longlong
    _start: cython.Py_ssize_t
    if count < 0:
        return _FAR
    while count > 0 and at < end:
        key_size, _start, at = read_field(view, at, end)
        if key_size < 0:
            return _FAR
        _size, _start, at = read_field(view, at, end)
        count -= 1
    return at if count == 0 else _FAR


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.Py_ssize_t,  # position after the record, or minus the status: TRUNCATED, BAD_RECORD
        cython.longlong,  # timestamp delta
        cython.longlong,  # offset delta
        cython.Py_ssize_t,  # key
        cython.longlong,  # key size, -1 for null
        cython.Py_ssize_t,  # value
        cython.longlong,  # value size, -1 for null
        cython.Py_ssize_t,  # first header
        cython.longlong,  # header count
    )
)
def _any_record(view: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Read the record at `start`, down to its last header."""
    at: cython.Py_ssize_t
    size: cython.longlong
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key: cython.Py_ssize_t
    key_size: cython.longlong
    value: cython.Py_ssize_t
    value_size: cython.longlong
    header_count: cython.longlong
    size, at = _varint(view, start, end)
    if size > end - at:  # five bytes decide about a length; with fewer, more may come
        at = -_BAD_RECORD if at == _FAR and end - start >= 5 else -_TRUNCATED
        return at, 0, 0, 0, 0, 0, 0, 0, 0
    after: cython.Py_ssize_t = at + size
    # The attributes byte has no meaning yet; where even that is missing, the next read fails.
    time_delta, at = _varlong(view, at + 1, after)
    if at > after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    offset_delta, at = _varint(view, at, after)
    if at > after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    key_size, key, at = read_field(view, at, after)
    if at > after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    value_size, value, at = read_field(view, at, after)
    if at > after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    header_count, at = _varint(view, at, after)
    if at > after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    headers_at: cython.Py_ssize_t = at
    if header_count != 0:
        at = _skip_headers(view, at, after, header_count)
    if at != after:
        return -_BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    return after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.bint, cython.ulonglong, cython.Py_ssize_t))
def _short(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """A number of one or two bytes, both of which may be read: (is it one, its bits, position after it)."""
    bits: cython.ulonglong = view[at]
    if bits < 0x80:
        return True, bits, at + 1
    byte: cython.ulonglong = view[at + 1]
    if byte < 0x80:
        return True, bits + (byte << 7) - 0x80, at + 2
    return False, 0, at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.Py_ssize_t,  # position after the record, or minus the status: TRUNCATED, BAD_RECORD
        cython.longlong,  # timestamp delta
        cython.longlong,  # offset delta
        cython.Py_ssize_t,  # key
        cython.longlong,  # key size, -1 for null
        cython.Py_ssize_t,  # value
        cython.longlong,  # value size, -1 for null
        cython.Py_ssize_t,  # first header
        cython.longlong,  # header count
    )
)
def read_record(view: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """_any_record() for good records whose lengths are short: almost all, and then in half the time."""
    short: cython.bint
    bits: cython.ulonglong
    at: cython.Py_ssize_t
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    value_size: cython.longlong
    header_count: cython.longlong = 0
    if start > end - 20:  # what the numbers up to the key's length take at most; no look at the end for each
        return _any_record(view, start, end)
    short, bits, at = _short(view, start)
    after: cython.Py_ssize_t = at + (bits >> 1)
    if not short or bits & 1 or after > end:
        return _any_record(view, start, end)
    short, bits, at = _short(view, at + 1)
    time_delta = _unzigzag(bits)
    if not short:
        time_delta, at = _long_varlong(view, at, end)
        if at > end:
            return _any_record(view, start, end)
    short, bits, at = _short(view, at)
    offset_delta = _unzigzag(bits)
    if not short:
        offset_delta, at = _long_varint(view, at, end)
        if at > end:
            return _any_record(view, start, end)
    short, bits, at = _short(view, at)
    key_size = _unzigzag(bits)
    key: cython.Py_ssize_t = at
    at += bits >> 1
    if not short or key_size < -1 or after - at < 2:  # the value's length and the number of headers
        return _any_record(view, start, end)
    short, bits, at = _short(view, at)
    value_size = _unzigzag(bits)
    value: cython.Py_ssize_t = at
    at += bits >> 1
    if not short or value_size < -1 or at >= after:
        return _any_record(view, start, end)
    headers_at: cython.Py_ssize_t = at + 1
    if at != after - 1 or view[at] != 0:
        header_count, headers_at = _varint(view, at, after)
        if _skip_headers(view, headers_at, after, header_count) != after:
            return _any_record(view, start, end)
    return after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (cython.int, cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.longlong)
)
def walk(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
    last_delta: cython.longlong,
):
    """check_records(), where no offset delta may pass `last_delta`."""
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    _position: cython.Py_ssize_t
    _size: cython.longlong
    index: cython.longlong = 0
    previous_delta: cython.longlong = -1
    largest_delta: cython.longlong = 0 if dense else last_delta
    step: cython.longlong = 1 if dense else 0
    # Deltas outside these would take the timestamp out of 64 bits.
    lowest_delta: cython.longlong = _INT64_MIN - base_timestamp if base_timestamp < 0 else _INT64_MIN
    highest_delta: cython.longlong = _INT64_MAX - base_timestamp if base_timestamp > 0 else _INT64_MAX
    least: cython.longlong = _INT64_MAX
    most: cython.longlong = _INT64_MIN
    most_index: cython.longlong = 0
    null_keys: cython.longlong = 0
    while index < count and at < end:
        at, time_delta, offset_delta, _position, key_size, _position, _size, _position, _size = read_record(
            view, at, end
        )
        if at < 0:  # the whole batch is here: a record that ends past it is bad, not cut
            return _BAD_RECORD, index, -1, -1, -1, 0
        if time_delta < least:
            if time_delta < lowest_delta:
                return _BAD_RECORD, index, -1, -1, -1, 0
            least = time_delta
        if time_delta > most:
            if time_delta > highest_delta:
                return _BAD_RECORD, index, -1, -1, -1, 0
            most = time_delta
            most_index = index
        if offset_delta <= previous_delta or offset_delta > largest_delta:
            return _BAD_OFFSETS, index, -1, -1, -1, 0
        previous_delta = offset_delta
        largest_delta += step
        if key_size < 0:
            null_keys += 1
        index += 1
    if index != count or at != end:
        return _BAD_COUNT, -1, -1, -1, -1, 0
    if count == 0:
        return 0, -1, -1, -1, -1, 0
    return 0, -1, base_timestamp + least, base_timestamp + most, most_index, null_keys


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(
    (cython.int, cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.longlong)
)
def walk_records(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
    last_delta: cython.longlong,
):
    status: cython.int
    bad_index: cython.longlong
    least: cython.longlong
    most: cython.longlong
    most_index: cython.longlong
    null_keys: cython.longlong
    if end - at < _RELEASE_GIL_SIZE:
        return walk(view, at, end, count, base_timestamp, dense, last_delta)
    with cython.nogil:
        status, bad_index, least, most, most_index, null_keys = walk(
            view, at, end, count, base_timestamp, dense, last_delta
        )
    return status, bad_index, least, most, most_index, null_keys


def check_records(
    buf,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    dense: cython.bint,
):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(start, end, len(buf))
    return walk_records(view, start, end, count, base_timestamp, dense, _INT32_MAX)


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
    check_bounds(start, end, len(buf))
    written: cython.Py_ssize_t
    position: cython.Py_ssize_t
    status: cython.int
    room: cython.Py_ssize_t = len(rows) // col.REC_ROW
    with cython.nogil:
        written, position, status = _decode(view, start, end, base_offset, base_timestamp, row, room)
    return written, position, status


@cython.cfunc
@cython.nogil
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
    after: cython.Py_ssize_t
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key: cython.Py_ssize_t
    key_size: cython.longlong
    value: cython.Py_ssize_t
    value_size: cython.longlong
    headers_at: cython.Py_ssize_t
    header_count: cython.longlong
    written: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    while at < end and written < room:
        after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count = (
            read_record(view, at, end)
        )
        if after < 0:
            return written, at, -after
        if overflows(base_offset, offset_delta) or overflows(base_timestamp, time_delta):
            return written, at, _BAD_RECORD
        row[to + col.REC_OFFSET] = base_offset + offset_delta
        row[to + col.REC_TIMESTAMP] = base_timestamp + time_delta
        row[to + col.REC_KEY] = key
        row[to + col.REC_KEY_SIZE] = key_size
        row[to + col.REC_VALUE] = value
        row[to + col.REC_VALUE_SIZE] = value_size
        row[to + col.REC_HEADERS] = headers_at
        row[to + col.REC_HEADER_COUNT] = header_count
        row[to + col.REC_START] = at
        row[to + col.REC_END] = after
        written += 1
        to += col.REC_ROW
        at = after
    return written, at, 0


def headers(buf, position: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(position, end, len(buf))
    source = memoryview(buf)
    key: cython.Py_ssize_t
    key_size: cython.longlong
    value: cython.Py_ssize_t
    value_size: cython.longlong
    found: list = []
    while count > 0:
        key_size, key, position = read_field(view, position, end)
        value_size, value, position = read_field(view, position, end)
        if key_size < 0 or position == _FAR:
            raise ValueError("these are not the headers of a record that decode() located")
        name = bytes(source[key : key + key_size])
        found.append((name, None if value_size < 0 else bytes(source[value : value + value_size])))
        count -= 1
    return found


@cython.cfunc
def _put_varint(out: bytearray, value: cython.longlong) -> cython.int:
    bits: cython.ulonglong = zigzag(value)
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return 0


@cython.cfunc
def _field_size(data) -> cython.longlong:
    if data is None:
        return 1
    size: cython.longlong = len(data)
    return varint_size(size) + size


@cython.cfunc
def _put_field(out: bytearray, data) -> cython.int:
    if data is None:
        out.append(1)
        return 0
    _put_varint(out, len(data))
    out += data
    return 0


def encode_records(out: bytearray, records: list, base_timestamp: cython.longlong, offset_deltas):
    index: cython.Py_ssize_t = 0
    size: cython.longlong
    time_delta: cython.longlong
    offset_delta: cython.longlong
    for timestamp, key, value, pairs in records:
        time_delta = timestamp - base_timestamp
        offset_delta = index if offset_deltas is None else offset_deltas[index]
        size = 1 + varint_size(time_delta) + varint_size(offset_delta) + varint_size(len(pairs))
        size += _field_size(key) + _field_size(value)
        for name, data in pairs:
            size += _field_size(name) + _field_size(data)
        _put_varint(out, size)
        out.append(0)
        _put_varint(out, time_delta)
        _put_varint(out, offset_delta)
        _put_field(out, key)
        _put_field(out, value)
        _put_varint(out, len(pairs))
        for name, data in pairs:
            _put_field(out, name)
            _put_field(out, data)
        index += 1
