# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over the records of one v2 batch. kernel.py says what rules they keep.

    length varint · attributes i8 · timestamp delta varlong · offset delta varint · key · value ·
    header count varint · headers (key, value)

Keys and values are a varint length (-1 for null, which a header's key may not be) and their bytes. The
length covers exactly what follows it. A read that fails gives the position `FAR`, past every end.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.numbers import (
        FAR,
        LLONG_MAX,
        LLONG_MIN,
        overflows,
        read_long_varint,
        read_short,
        read_varint,
        unzigzag,
        varint_size,
        zigzag,
    )
else:
    from ottla.records import columns as col
    from ottla.records.numbers import (
        FAR,
        LLONG_MAX,
        LLONG_MIN,
        overflows,
        read_long_varint,
        read_short,
        read_varint,
        unzigzag,
        varint_size,
        zigzag,
    )

# A walk over fewer bytes takes microseconds: not worth handing the GIL over.
_RELEASE_GIL_SIZE = cython.declare(cython.Py_ssize_t, 65536)


def check_bounds(start, end, size):
    if start < 0 or start > end or end > size:
        raise ValueError(f"[{start}, {end}) does not lie within the {size} bytes of the buffer")
    return 0


def read_field(view, at, end):
    """Bytes after their length: (size, -1 for null; position; position after them)."""
    size: cython.longlong
    size, at = read_varint(view, at, end, 32)
    if size < -1 or size > end - at:
        return 0, 0, FAR
    return size, at, at + size if size > 0 else at


def _skip_headers(view, at, end, count):
    """The position after `count` headers."""
    key_size: cython.longlong
    _size: cython.longlong
    _start: cython.Py_ssize_t
    if count < 0:
        return FAR
    while count > 0 and at < end:
        key_size, _start, at = read_field(view, at, end)
        if key_size < 0:
            return FAR
        _size, _start, at = read_field(view, at, end)
        count -= 1
    return at if count == 0 else FAR


def _any_record(view, start, end):
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
    size, at = read_varint(view, start, end, 32)
    if size > end - at:  # five bytes decide about a length; with fewer, more may come
        at = -col.BAD_RECORD if at == FAR and end - start >= 5 else -col.TRUNCATED
        return at, 0, 0, 0, 0, 0, 0, 0, 0
    after: cython.Py_ssize_t = at + size
    # The attributes byte has no meaning yet. After a read that fails all others do: one look at the end is enough.
    time_delta, at = read_varint(view, at + 1, after, 64)
    offset_delta, at = read_varint(view, at, after, 32)
    key_size, key, at = read_field(view, at, after)
    value_size, value, at = read_field(view, at, after)
    header_count, at = read_varint(view, at, after, 32)
    headers_at: cython.Py_ssize_t = at
    if header_count != 0:
        at = _skip_headers(view, at, after, header_count)
    if at != after:
        return -col.BAD_RECORD, 0, 0, 0, 0, 0, 0, 0, 0
    return after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count


def read_record(view, start, end):
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
    short, bits, at = read_short(view, start)
    after: cython.Py_ssize_t = at + (bits >> 1)
    if not short or bits & 1 or after > end:
        return _any_record(view, start, end)
    short, bits, at = read_short(view, at + 1)
    time_delta = unzigzag(bits)
    if not short:
        time_delta, at = read_long_varint(view, at, end, 64)
        if at > end:
            return _any_record(view, start, end)
    short, bits, at = read_short(view, at)
    offset_delta = unzigzag(bits)
    if not short:
        offset_delta, at = read_long_varint(view, at, end, 32)
        if at > end:
            return _any_record(view, start, end)
    short, bits, at = read_short(view, at)
    key_size = unzigzag(bits)
    key: cython.Py_ssize_t = at
    at += bits >> 1
    if not short or key_size < -1 or after - at < 2:  # the value's length and the number of headers
        return _any_record(view, start, end)
    short, bits, at = read_short(view, at)
    value_size = unzigzag(bits)
    value: cython.Py_ssize_t = at
    at += bits >> 1
    if not short or value_size < -1 or at >= after:
        return _any_record(view, start, end)
    headers_at: cython.Py_ssize_t = at + 1
    if at != after - 1 or view[at] != 0:
        header_count, headers_at = read_varint(view, at, after, 32)
        if _skip_headers(view, headers_at, after, header_count) != after:
            return _any_record(view, start, end)
    return after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count


def walk(view, at, end, count, base_timestamp, dense, last_delta):
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
    lowest_delta: cython.longlong = LLONG_MIN - base_timestamp if base_timestamp < 0 else LLONG_MIN
    highest_delta: cython.longlong = LLONG_MAX - base_timestamp if base_timestamp > 0 else LLONG_MAX
    least: cython.longlong = LLONG_MAX
    most: cython.longlong = LLONG_MIN
    most_index: cython.longlong = 0
    null_keys: cython.longlong = 0
    while index < count and at < end:
        at, time_delta, offset_delta, _position, key_size, _position, _size, _position, _size = read_record(
            view, at, end
        )
        if at < 0:  # the whole batch is here: a record that ends past it is bad, not cut
            return col.BAD_RECORD, index, -1, -1, -1, 0
        if time_delta < least:
            if time_delta < lowest_delta:
                return col.BAD_RECORD, index, -1, -1, -1, 0
            least = time_delta
        if time_delta > most:
            if time_delta > highest_delta:
                return col.BAD_RECORD, index, -1, -1, -1, 0
            most = time_delta
            most_index = index
        if offset_delta <= previous_delta or offset_delta > largest_delta:
            return col.BAD_OFFSETS, index, -1, -1, -1, 0
        previous_delta = offset_delta
        largest_delta += step
        if key_size < 0:
            null_keys += 1
        index += 1
    if index != count or at != end:
        return col.BAD_COUNT, -1, -1, -1, -1, 0
    if count == 0:
        return 0, -1, -1, -1, -1, 0
    return 0, -1, base_timestamp + least, base_timestamp + most, most_index, null_keys


def walk_records(view, at, end, count, base_timestamp, dense, last_delta):
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
    return walk_records(view, start, end, count, base_timestamp, dense, col.INT32_MAX)


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


def _decode(view, at, end, base_offset, base_timestamp, row, room):
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
            return written, at, col.BAD_RECORD
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
        if key_size < 0 or position == FAR:
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
