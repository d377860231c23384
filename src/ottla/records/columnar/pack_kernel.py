# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops that make records out of Arrow columns: which partition a row goes to, and its bytes.

pack_kernel.pyi has the contracts. A column of bytes is three buffers: a bit for each row that is not null (or None),
int32 offsets, and the bytes between them.
"""

from __future__ import annotations

from array import array

import cython

if cython.compiled:
    from cython.cimports.ottla.records.numbers import copy_bytes, put_varint, varint_size
else:
    from ottla.records.numbers import copy_bytes, put_varint, varint_size

_SEED = cython.declare(cython.uint, 0x9747B28C)
_MIX = cython.declare(cython.uint, 0x5BD1E995)
_UINT32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_POSITIVE = cython.declare(cython.uint, 0x7FFFFFFF)
_EMPTY = bytes(1)
_NO_TIMES = array("q")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_null(
    valid: cython.const[cython.uchar][::1], has_nulls: cython.bint, row: cython.Py_ssize_t
) -> cython.bint:
    return has_nulls and not valid[row >> 3] >> (row & 7) & 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _times_mix(value: cython.uint) -> cython.uint:
    product: cython.ulonglong = value
    product = product * _MIX & _UINT32
    return cython.cast(cython.uint, product)


@cython.cfunc
@cython.exceptval(check=False)
def _murmur2(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.uint:
    bits: cython.uint = _SEED ^ cython.cast(cython.uint, size)
    word: cython.uint
    left: cython.Py_ssize_t = size
    while left >= 4:
        word = data[at + 3]
        word = word << 8 | data[at + 2]
        word = word << 8 | data[at + 1]
        word = word << 8 | data[at]
        word = _times_mix(word)
        word ^= word >> 24
        bits = _times_mix(bits) ^ _times_mix(word)
        at += 4
        left -= 4
    if left == 3:
        word = data[at + 2]
        bits ^= word << 16
    if left >= 2:
        word = data[at + 1]
        bits ^= word << 8
    if left >= 1:
        bits ^= data[at]
        bits = _times_mix(bits)
    bits ^= bits >> 13
    bits = _times_mix(bits)
    return bits ^ bits >> 15


def murmur2(data) -> int:
    return _murmur2(data, 0, len(data)) if len(data) else _murmur2(_EMPTY, 0, 0)


def partition_rows(
    keys,
    value_offsets: cython.const[cython.int][::1],
    partitions: cython.int,
    sticky: cython.int,
    sticky_bytes: cython.longlong,
    out: cython.int[::1],
):
    has_nulls: cython.bint = keys[0] is not None
    valid: cython.const[cython.uchar][::1] = keys[0] if has_nulls else _EMPTY
    offsets: cython.const[cython.int][::1] = keys[1]
    data: cython.const[cython.uchar][::1] = keys[2] if len(keys[2]) else _EMPTY
    rows: cython.Py_ssize_t = len(out)
    row: cython.Py_ssize_t
    gone: cython.longlong = 0
    hashed: cython.uint
    for row in range(rows):
        if out[row] >= 0:
            continue
        if not _is_null(valid, has_nulls, row):
            hashed = _murmur2(data, offsets[row], offsets[row + 1] - offsets[row])
            out[row] = cython.cast(cython.int, (hashed & _POSITIVE) % cython.cast(cython.uint, partitions))
            continue
        out[row] = sticky
        gone += value_offsets[row + 1] - value_offsets[row]
        if gone >= sticky_bytes:
            gone = 0
            sticky = (sticky + 1) % partitions
    return sticky


def group_rows(numbers: cython.const[cython.int][::1], order: cython.int[::1], ends: cython.int[::1]):
    rows: cython.Py_ssize_t = len(numbers)
    groups: cython.Py_ssize_t = len(ends)
    at: cython.Py_ssize_t
    sum_: cython.int = 0
    count: cython.int
    for at in range(groups):
        ends[at] = 0
    for at in range(rows):
        if numbers[at] < 0 or numbers[at] >= groups:
            raise ValueError(f"row {at} is of group {numbers[at]}, not of 0 to {groups - 1}")
        ends[numbers[at]] += 1
    for at in range(groups):  # where each group begins; every row then moves its group's end on
        count = ends[at]
        ends[at] = sum_
        sum_ += count
    for at in range(rows):
        order[ends[numbers[at]]] = cython.cast(cython.int, at)
        ends[numbers[at]] += 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size_at(
    valid: cython.const[cython.uchar][::1],
    has_nulls: cython.bint,
    offsets: cython.const[cython.int][::1],
    row: cython.Py_ssize_t,
) -> cython.longlong:
    if _is_null(valid, has_nulls, row):
        return -1
    return offsets[row + 1] - offsets[row]


class Packer:
    """Rows of one Arrow batch, ready to be written as records."""

    def __init__(self, keys, values, headers, times=None):
        self._has_times = times is not None
        self._times = times if self._has_times else _NO_TIMES
        self._base_time = 0
        self._key_nulls = keys[0] is not None
        self._key_valid = keys[0] if self._key_nulls else _EMPTY
        self._key_offsets = keys[1]
        self._keys = keys[2] if len(keys[2]) else _EMPTY
        self._value_nulls = values[0] is not None
        self._value_valid = values[0] if self._value_nulls else _EMPTY
        self._value_offsets = values[1]
        self._values = values[2] if len(values[2]) else _EMPTY
        self._has_headers = headers is not None
        if headers is not None:
            valid, self._lists, names, contents = headers
            self._list_nulls = valid is not None
            self._list_valid = valid if self._list_nulls else _EMPTY
            self._name_offsets = names[1]
            self._names = names[2] if len(names[2]) else _EMPTY
            self._header_nulls = contents[0] is not None
            self._header_valid = contents[0] if self._header_nulls else _EMPTY
            self._header_offsets = contents[1]
            self._headers = contents[2] if len(contents[2]) else _EMPTY

    def _headers_of(self, row):
        if not self._has_headers or _is_null(self._list_valid, self._list_nulls, row):
            return 0
        return self._lists[row + 1] - self._lists[row]

    def _time_delta(self, row):
        return self._times[row] - self._base_time if self._has_times else 0

    def _body_size(self, row, delta):
        size: cython.longlong
        at: cython.Py_ssize_t
        count: cython.longlong = self._headers_of(row)
        body: cython.longlong = 1 + varint_size(delta) + varint_size(count)
        body += varint_size(self._time_delta(row))
        size = _size_at(self._key_valid, self._key_nulls, self._key_offsets, row)
        body += varint_size(size) + (size if size > 0 else 0)
        size = _size_at(self._value_valid, self._value_nulls, self._value_offsets, row)
        body += varint_size(size) + (size if size > 0 else 0)
        if count:
            for at in range(self._lists[row], self._lists[row + 1]):
                size = self._name_offsets[at + 1] - self._name_offsets[at]
                body += varint_size(size) + size
                size = _size_at(self._header_valid, self._header_nulls, self._header_offsets, at)
                body += varint_size(size) + (size if size > 0 else 0)
        return body

    def _put(self, out, at, row, delta):
        size: cython.longlong
        header: cython.Py_ssize_t
        count: cython.longlong = self._headers_of(row)
        at = put_varint(out, at, self._body_size(row, delta))
        out[at] = 0  # attributes
        at = put_varint(out, at + 1, self._time_delta(row))
        at = put_varint(out, at, delta)
        size = _size_at(self._key_valid, self._key_nulls, self._key_offsets, row)
        at = copy_bytes(self._keys, self._key_offsets[row], size, out, put_varint(out, at, size))
        size = _size_at(self._value_valid, self._value_nulls, self._value_offsets, row)
        at = copy_bytes(self._values, self._value_offsets[row], size, out, put_varint(out, at, size))
        at = put_varint(out, at, count)
        if count:
            for header in range(self._lists[row], self._lists[row + 1]):
                size = self._name_offsets[header + 1] - self._name_offsets[header]
                at = copy_bytes(self._names, self._name_offsets[header], size, out, put_varint(out, at, size))
                size = _size_at(self._header_valid, self._header_nulls, self._header_offsets, header)
                at = copy_bytes(
                    self._headers, self._header_offsets[header], size, out, put_varint(out, at, size)
                )
        return at

    def pack(
        self,
        out: bytearray,
        records: cython.longlong,
        order: cython.const[cython.int][::1],
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        limit_bytes: cython.longlong,
        base_time: cython.longlong = 0,
    ):
        self._base_time = base_time
        stop: cython.Py_ssize_t = begin
        size: cython.longlong
        start: cython.Py_ssize_t = len(out)
        total: cython.longlong = start
        delta: cython.longlong = records
        while stop < end:
            size = self._body_size(order[stop], delta)
            size += varint_size(size)
            if total + size > limit_bytes and delta > 0:
                break
            total += size
            delta += 1
            stop += 1
        if stop > begin:
            out.extend(bytes(total - start))
            view: cython.uchar[::1] = out
            at: cython.Py_ssize_t = start
            index: cython.Py_ssize_t
            for index in range(begin, stop):
                at = self._put(view, at, order[index], records + index - begin)
        return stop

    def latest_time(
        self, order: cython.const[cython.int][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ):
        latest: cython.longlong = -1
        index: cython.Py_ssize_t
        for index in range(begin, end):
            if self._times[order[index]] > latest:
                latest = self._times[order[index]]
        return latest
