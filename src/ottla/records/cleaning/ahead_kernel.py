# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the records of a batch for the cleaner, some ahead of their turn, and hashes their keys.

A key is known by a keyed 128-bit hash (SipHash-2-4): two keys with the same hash count as one, and nobody can find such
a pair without the random key. records/kernel.py says what rules these loops keep.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.varint_kernel import overflows
else:
    from ottla.records import columns as col
    from ottla.records.varints import overflows

# How many records are read ahead, and how one stands to the map: offset out of the range asked for, no key, key.
_AHEAD = cython.declare(cython.Py_ssize_t, 64)
_OUT_OF_RANGE = cython.declare(cython.longlong, 0)
_NO_KEY = cython.declare(cython.longlong, 1)
_KEYED = cython.declare(cython.longlong, 2)

_UINT32_MAX = cython.declare(cython.ulonglong, 0xFFFFFFFF)

# SipHash's four constants.
_SIP0 = cython.declare(cython.ulonglong, 0x736F6D6570736575)
_SIP1 = cython.declare(cython.ulonglong, 0x646F72616E646F6D)
_SIP2 = cython.declare(cython.ulonglong, 0x6C7967656E657261)
_SIP3 = cython.declare(cython.ulonglong, 0x7465646279746573)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrap(value: cython.ulonglong) -> cython.ulonglong:
    """64 bits of a sum or a shift; C keeps no more by itself."""
    if cython.compiled:
        return value
    else:
        return value & 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotate(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    return _wrap(value << bits) | (value >> (64 - bits))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong))
def _sip_round(v0: cython.ulonglong, v1: cython.ulonglong, v2: cython.ulonglong, v3: cython.ulonglong):
    v0 = _wrap(v0 + v1)
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = _wrap(v2 + v3)
    v3 = _rotate(v3, 16) ^ v2
    v0 = _wrap(v0 + v3)
    v3 = _rotate(v3, 21) ^ v0
    v2 = _wrap(v2 + v1)
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    """Eight bytes, the lowest first."""
    b0: cython.ulonglong = view[at]
    b1: cython.ulonglong = view[at + 1]
    b2: cython.ulonglong = view[at + 2]
    b3: cython.ulonglong = view[at + 3]
    b4: cython.ulonglong = view[at + 4]
    b5: cython.ulonglong = view[at + 5]
    b6: cython.ulonglong = view[at + 6]
    b7: cython.ulonglong = view[at + 7]
    return b0 | b1 << 8 | b2 << 16 | b3 << 24 | b4 << 32 | b5 << 40 | b6 << 48 | b7 << 56


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong))
def _siphash(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    key0: cython.ulonglong,
    key1: cython.ulonglong,
):
    """SipHash-2-4 with 128 bits of output, of the `size` bytes at `at`."""
    v0: cython.ulonglong = key0 ^ _SIP0
    v1: cython.ulonglong = key1 ^ _SIP1 ^ 0xEE
    v2: cython.ulonglong = key0 ^ _SIP2
    v3: cython.ulonglong = key1 ^ _SIP3
    word: cython.ulonglong
    byte: cython.ulonglong
    low: cython.ulonglong
    left: cython.Py_ssize_t = size
    shift: cython.int = 0
    while left >= 8:
        word = _word(view, at)
        v3 ^= word
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
        left -= 8
    word = size & 0xFF
    word <<= 56
    while left > 0:
        byte = view[at]
        word |= byte << shift
        shift += 8
        at += 1
        left -= 1
    v3 ^= word
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= 0xEE
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


def siphash(data, key0: cython.ulonglong, key1: cython.ulonglong):
    view: cython.const[cython.uchar][::1] = data
    return _siphash(view, 0, len(data), key0, key1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varint(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bytes_max: cython.int,
):
    """A zigzag number of at most `bytes_max` bytes: (value, position after it), or position -1 if there is none."""
    bits: cython.ulonglong = 0
    byte: cython.ulonglong
    half: cython.longlong
    sign: cython.longlong
    shift: cython.int = 0
    while at < end and shift < 7 * bytes_max:
        byte = view[at]
        at += 1
        if shift == 63 and byte > 1:
            break
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            if bytes_max == 5 and bits > _UINT32_MAX:
                break
            half = bits >> 1
            sign = bits & 1
            return half ^ -sign, at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.Py_ssize_t,  # position after the record, -1 if it is malformed
        cython.Py_ssize_t,  # position of its attributes byte
        cython.Py_ssize_t,  # position after its time delta
        cython.longlong,  # time delta
        cython.longlong,  # offset delta
        cython.Py_ssize_t,  # key position
        cython.longlong,  # key size, -1 for null
        cython.longlong,  # value size, -1 for null
    )
)
def _record(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Read the record at `at` as far as its value's size; what follows stays within the record by its length."""
    size: cython.longlong
    time_delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    value_size: cython.longlong
    size, at = _varint(view, at, end, 5)
    if at < 0 or size < 1 or size > end - at:
        return -1, 0, 0, 0, 0, 0, 0, 0
    body: cython.Py_ssize_t = at
    stop: cython.Py_ssize_t = at + size
    time_delta, at = _varint(view, at + 1, stop, 10)
    if at < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0
    timed: cython.Py_ssize_t = at
    offset_delta, at = _varint(view, at, stop, 5)
    if at < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0
    key_size, at = _varint(view, at, stop, 5)
    if at < 0 or key_size < -1 or key_size > stop - at:
        return -1, 0, 0, 0, 0, 0, 0, 0
    key_at: cython.Py_ssize_t = at
    if key_size > 0:
        at += key_size
    value_size, at = _varint(view, at, stop, 5)
    if at < 0 or value_size < -1 or value_size > stop - at:
        return -1, 0, 0, 0, 0, 0, 0, 0
    return stop, body, timed, time_delta, offset_delta, key_at, key_size, value_size


@cython.cclass
class Ahead:
    """Up to 64 records of a batch, and the hashes of their keys.

    `rows` has 8 numbers for each record: where it begins, where it ends, where its attributes are, where its time delta
    ends, timestamp, offset, how it stands to the map, size of its value. `hashes` has two halves for each.
    """

    def __init__(self, key0, key1):
        self.key0 = key0
        self.key1 = key1
        self.rows = memoryview(bytearray(8 * col.AHEAD_ROW * _AHEAD)).cast("q")
        self.hashes = memoryview(bytearray(8 * 2 * _AHEAD)).cast("Q")

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read(
        self,
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        base_timestamp: cython.longlong,
        low: cython.longlong,
        high: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Read `count` records, hash the keys of those in [low, high]; the position after them, or -1."""
        body: cython.Py_ssize_t
        timed: cython.Py_ssize_t
        time_delta: cython.longlong
        offset_delta: cython.longlong
        key_at: cython.Py_ssize_t
        key_size: cython.longlong
        value_size: cython.longlong
        start: cython.Py_ssize_t
        kind: cython.longlong
        index: cython.Py_ssize_t
        to: cython.Py_ssize_t = 0
        rows: cython.longlong[::1] = self.rows
        hashes: cython.ulonglong[::1] = self.hashes
        for index in range(count):
            start = at
            at, body, timed, time_delta, offset_delta, key_at, key_size, value_size = _record(view, at, end)
            if at < 0 or overflows(base_offset, offset_delta) or overflows(base_timestamp, time_delta):
                return -1
            kind = _NO_KEY if low <= base_offset + offset_delta <= high else _OUT_OF_RANGE
            if kind == _NO_KEY and key_size >= 0:
                kind = _KEYED
                hashes[index * 2], hashes[index * 2 + 1] = _siphash(
                    view, key_at, key_size, self.key0, self.key1
                )
            rows[to + col.AHEAD_START] = start
            rows[to + col.AHEAD_END] = at
            rows[to + col.AHEAD_BODY] = body
            rows[to + col.AHEAD_TIMED] = timed
            rows[to + col.AHEAD_TIMESTAMP] = base_timestamp + time_delta
            rows[to + col.AHEAD_OFFSET] = base_offset + offset_delta
            rows[to + col.AHEAD_KIND] = kind
            rows[to + col.AHEAD_VALUE_SIZE] = value_size
            to += col.AHEAD_ROW
        return at
