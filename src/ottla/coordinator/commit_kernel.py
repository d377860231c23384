# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Writes a committed offset as what it is in `__consumer_offsets`: a record, key and value and all.

commit_kernel.pyi has the contract. A commit may bring many, so they are written without anything made in between.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy

_KEY_REST = cython.declare(cython.Py_ssize_t, 4)  # the partition
_VALUE_HEAD = cython.declare(cython.Py_ssize_t, 14)  # version, offset, leader epoch
_TIME = cython.declare(cython.Py_ssize_t, 8)
_VALUE_VERSION = cython.declare(cython.int, 4)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _zigzag(value: cython.longlong) -> cython.ulonglong:
    if value >= 0:
        return cython.cast(cython.ulonglong, value) << 1
    return (cython.cast(cython.ulonglong, -1 - value) << 1) + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    bits: cython.ulonglong = _zigzag(value)
    size: cython.Py_ssize_t = 1
    while bits >= 0x80:
        bits >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(data: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    bits: cython.ulonglong = _zigzag(value)
    while bits >= 0x80:
        data[at] = bits & 0x7F | 0x80
        bits >>= 7
        at += 1
    data[at] = bits
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_number(
    data: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong, size: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Big-endian, in so many bytes."""
    place: cython.Py_ssize_t = at + size
    while place > at:
        place -= 1
        data[place] = value & 0xFF
        value >>= 8
    return at + size


@cython.cfunc
@cython.inline
def _put_bytes(data: cython.p_uchar, at: cython.Py_ssize_t, more: bytes) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = len(more)
    if cython.compiled:
        memcpy(data + at, cython.cast(cython.p_char, more), size)
    else:
        data[at : at + size] = more
    return at + size


def put_commit(
    out: bytearray,
    time_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: bytes,
    partition: cython.longlong,
    offset: cython.longlong,
    leader_epoch: cython.longlong,
    metadata: bytes,
    timestamp: cython.longlong,
    tags: bytes,
) -> None:
    start: cython.Py_ssize_t = len(out)
    key_size: cython.Py_ssize_t = len(key) + _KEY_REST
    value_size: cython.Py_ssize_t = _VALUE_HEAD + len(metadata) + _TIME + len(tags)
    # Between them: attributes in front, the number of headers behind.
    size: cython.Py_ssize_t = 2 + _varint_size(time_delta) + _varint_size(offset_delta)
    size += _varint_size(key_size) + key_size + _varint_size(value_size) + value_size
    room: cython.Py_ssize_t = _varint_size(size) + size
    if cython.compiled:
        PyByteArray_Resize(out, start + room)
        data: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(out))
    else:
        out.extend(bytes(room))
        data = out
    at: cython.Py_ssize_t = _put_varint(data, start, size)
    data[at] = 0
    at = _put_varint(data, at + 1, time_delta)
    at = _put_varint(data, at, offset_delta)
    at = _put_bytes(data, _put_varint(data, at, key_size), key)
    at = _put_number(data, at, partition, 4)
    at = _put_varint(data, at, value_size)
    at = _put_number(data, at, _VALUE_VERSION, 2)
    at = _put_number(data, at, offset, 8)
    at = _put_number(data, at, leader_epoch, 4)
    at = _put_bytes(data, at, metadata)
    at = _put_number(data, at, timestamp, 8)
    at = _put_bytes(data, at, tags)
    data[at] = 0
