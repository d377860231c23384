# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the records of a batch for the cleaner, some ahead of their turn, and hashes their keys.

A key is known by a keyed 128-bit hash (SipHash-2-4): two keys with the same hash count as one, and nobody can find such
a pair without the random key. records/kernel.py says what rules these loops keep.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.cleaning import codes as clean
    from cython.cimports.ottla.records.numbers import overflows, read_word
    from cython.cimports.ottla.records.record_kernel import read_record
else:
    from ottla.records import columns as col
    from ottla.records.cleaning import codes as clean
    from ottla.records.numbers import overflows, read_word
    from ottla.records.record_kernel import read_record

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
@cython.returns((cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong))
def _last_rounds(v0: cython.ulonglong, v1: cython.ulonglong, v2: cython.ulonglong, v3: cython.ulonglong):
    _round: cython.int
    for _round in range(4):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return v0, v1, v2, v3


def _siphash(view, at, size, key0, key1):
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
        word = read_word(view, at)
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
    v0, v1, v2, v3 = _last_rounds(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    v0, v1, v2, v3 = _last_rounds(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


def siphash(data, key0: cython.ulonglong, key1: cython.ulonglong):
    view: cython.const[cython.uchar][::1] = data
    return _siphash(view, 0, len(data), key0, key1)


class Ahead:
    """Up to 64 records of a batch, and the hashes of their keys.

    `rows` has a row for each record (columns.py), `hashes` the two halves of the hash of each.
    """

    def __init__(self, key0, key1):
        self.key0 = key0
        self.key1 = key1
        self.rows = memoryview(bytearray(8 * col.AHEAD_ROW * clean.READ_AHEAD)).cast("q")
        self.hashes = memoryview(bytearray(8 * 2 * clean.READ_AHEAD)).cast("Q")

    def read(self, view, at, end, count, base_offset, base_timestamp, low, high):
        """Read `count` records, hash the keys of those in [low, high]; the position after them, or -1."""
        time_delta: cython.longlong
        offset_delta: cython.longlong
        key_at: cython.Py_ssize_t
        key_size: cython.longlong
        _value: cython.Py_ssize_t
        value_size: cython.longlong
        _headers: cython.Py_ssize_t
        _count: cython.longlong
        start: cython.Py_ssize_t
        kind: cython.longlong
        index: cython.Py_ssize_t
        to: cython.Py_ssize_t = 0
        rows: cython.longlong[::1] = self.rows
        hashes: cython.ulonglong[::1] = self.hashes
        for index in range(count):
            start = at
            at, time_delta, offset_delta, key_at, key_size, _value, value_size, _headers, _count = (
                read_record(view, at, end)
            )
            if at < 0 or overflows(base_offset, offset_delta) or overflows(base_timestamp, time_delta):
                return -1
            kind = clean.NO_KEY if low <= base_offset + offset_delta <= high else clean.OUT_OF_RANGE
            if kind == clean.NO_KEY and key_size >= 0:
                kind = clean.KEYED
                hashes[index * 2], hashes[index * 2 + 1] = _siphash(
                    view, key_at, key_size, self.key0, self.key1
                )
            rows[to + col.AHEAD_START] = start
            rows[to + col.AHEAD_END] = at
            rows[to + col.AHEAD_TIMESTAMP] = base_timestamp + time_delta
            rows[to + col.AHEAD_OFFSET] = base_offset + offset_delta
            rows[to + col.AHEAD_KIND] = kind
            rows[to + col.AHEAD_VALUE_SIZE] = value_size
            to += col.AHEAD_ROW
        return at
