# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of the log cleaner over records: which offset is the last for each key, and which records stay.

compact_kernel.pyi has the contracts, kernel.py the rules that keep both ways of running the same. Keys are known by
a keyed 128-bit hash (SipHash-2-4): two keys with the same hash count as one, and nobody can find such a pair without
the random key.
"""

from __future__ import annotations

import cython

from ottla.records.kernel import checksum

if cython.compiled:
    from cython.cimports.ottla.records.varint_kernel import varint_size, zigzag
else:
    from ottla.records.varints import varint_size, zigzag

FILTER, FILTER_OR_EMPTY, EMPTY, DROP, MARK, COPY = range(6)
DONE, PACKED, FULL, NO_ROOM, BAD = range(5)
# A new time delta takes up to 9 bytes more than the old one, and its record's length one more.
GROWTH_BYTES = 10

_FILTER_OR_EMPTY = cython.declare(cython.int, 1)
_EMPTY = cython.declare(cython.int, 2)
_DROP = cython.declare(cython.int, 3)
_MARK = cython.declare(cython.int, 4)
_COPY = cython.declare(cython.int, 5)

_DONE = cython.declare(cython.int, 0)
_PACKED = cython.declare(cython.int, 1)
_FULL = cython.declare(cython.int, 2)
_NO_ROOM = cython.declare(cython.int, 3)
_BAD = cython.declare(cython.int, 4)
_TOO_FAR = cython.declare(cython.int, 5)  # a timestamp cannot be told relative to the delete horizon

# A row of scan() and its columns, as kernel.py has them.
_ROW = cython.declare(cython.Py_ssize_t, 16)
_POSITION = cython.declare(cython.Py_ssize_t, 0)
_SIZE = cython.declare(cython.Py_ssize_t, 1)
_BASE_OFFSET = cython.declare(cython.Py_ssize_t, 2)
_LAST_OFFSET = cython.declare(cython.Py_ssize_t, 3)
_MAX_TIMESTAMP = cython.declare(cython.Py_ssize_t, 4)
_MAGIC = cython.declare(cython.Py_ssize_t, 6)
_ATTRIBUTES = cython.declare(cython.Py_ssize_t, 7)
_COUNT = cython.declare(cython.Py_ssize_t, 11)
_BASE_TIMESTAMP = cython.declare(cython.Py_ssize_t, 12)

_CODEC = cython.declare(cython.longlong, 0x07)
_LOG_APPEND_TIME = cython.declare(cython.longlong, 0x08)
_TRANSACTIONAL_OR_CONTROL = cython.declare(cython.longlong, 0x30)
_DELETE_HORIZON = cython.declare(cython.longlong, 0x40)
_KEPT_WHEN_EMPTY = cython.declare(cython.longlong, 0x38)

_HEADER = cython.declare(cython.Py_ssize_t, 61)
_GROWTH = cython.declare(cython.Py_ssize_t, 10)

_UINT32_MAX = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_INT32_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
_INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_INT64_MIN = cython.declare(cython.longlong, -0x7FFFFFFFFFFFFFFF - 1)

# SipHash's four constants.
_SIP0 = cython.declare(cython.ulonglong, 0x736F6D6570736575)
_SIP1 = cython.declare(cython.ulonglong, 0x646F72616E646F6D)
_SIP2 = cython.declare(cython.ulonglong, 0x6C7967656E657261)
_SIP3 = cython.declare(cython.ulonglong, 0x7465646279746573)

# How a record that was read ahead stands to the map: not to be looked up at all, without a key, with one.
_OUT_OF_RANGE = cython.declare(cython.longlong, 0)
_IN_RANGE = cython.declare(cython.longlong, 1)
_KEYED = cython.declare(cython.longlong, 2)
_AHEAD = cython.declare(cython.Py_ssize_t, 64)

_SLOT_WORDS = 3
_FIRST_SLOTS = 1 << 12
_GROWTH_FACTOR = 4


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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    return base > _INT64_MAX - delta if delta > 0 else base < _INT64_MIN - delta


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    view: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy [start, end) to `to`; the position after it there."""
    if cython.compiled:
        index: cython.Py_ssize_t
        for index in range(end - start):
            out[to + index] = view[start + index]
    else:
        out[to : to + end - start] = view[start:end]
    return to + end - start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong, size: cython.int
) -> cython.Py_ssize_t:
    """A big-endian number of `size` bytes; the position after it."""
    index: cython.Py_ssize_t = at + size
    while index > at:
        index -= 1
        out[index] = value & 0xFF
        value >>= 8
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    bits: cython.ulonglong = zigzag(value)
    while bits >= 0x80:
        out[at] = bits & 0x7F | 0x80
        bits >>= 7
        at += 1
    out[at] = bits & 0x7F
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _home(slots: cython.ulonglong, hash0: cython.ulonglong) -> cython.Py_ssize_t:
    """The first word of the slot where a search for the hash begins."""
    return ((hash0 >> 32) * slots >> 32) * 3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    table: cython.ulonglong[::1], slots: cython.ulonglong, hash0: cython.ulonglong, hash1: cython.ulonglong
) -> cython.Py_ssize_t:
    """The first word of the slot that has this hash, or of the free one where it belongs."""
    at: cython.Py_ssize_t = _home(slots, hash0)
    end: cython.Py_ssize_t = slots * 3
    while table[at + 2] != 0 and (table[at] != hash0 or table[at + 1] != hash1):
        at += 3
        if at == end:
            at = 0
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rehash(
    old: cython.ulonglong[::1],
    old_slots: cython.ulonglong,
    new: cython.ulonglong[::1],
    slots: cython.ulonglong,
) -> cython.int:
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = old_slots * 3
    to: cython.Py_ssize_t
    while at < end:
        if old[at + 2] != 0:
            to = _find(new, slots, old[at], old[at + 1])
            new[to] = old[at]
            new[to + 1] = old[at + 1]
            new[to + 2] = old[at + 2]
        at += 3
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_record(
    view: cython.const[cython.uchar][::1],
    body: cython.Py_ssize_t,
    timed: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    time_delta: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """A record with another time delta: attributes from `body`, and all from `timed` on."""
    to = _put_varint(out, to, 1 + varint_size(time_delta) + stop - timed)
    to = _copy(view, body, body + 1, out, to)
    to = _put_varint(out, to, time_delta)
    return _copy(view, timed, stop, out, to)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_empty(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    attributes: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The batch at `at` without records: what it says of its producer and its offsets stays."""
    _copy(view, at, at + _HEADER, out, to)
    _put(out, to + 8, _HEADER - 12, 4)
    _put(out, to + 21, attributes & _KEPT_WHEN_EMPTY, 2)
    _put(out, to + 27, -1, 8)
    _put(out, to + 57, 0, 4)
    return to + _HEADER


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_plain(row: cython.longlong[::1], column: cython.Py_ssize_t, action: cython.int) -> cython.bint:
    """Whether the action can be done where the batch lies. To empty a batch, its records need not be opened."""
    return row[column + _MAGIC] == 2 and (action == _EMPTY or not row[column + _ATTRIBUTES] & _CODEC)


@cython.final
@cython.cclass
class OffsetMap:
    """The last offset of each key, by hash: slots of three words, of which the last is the offset + 1 or 0."""

    _table: cython.ulonglong[::1]
    _slots: cython.ulonglong
    _max_slots: cython.longlong
    _load_factor: cython.double
    _entries: cython.longlong
    _key0: cython.ulonglong
    _key1: cython.ulonglong
    # What is read ahead: 8 numbers a record, two halves of a hash and a word that nobody needs.
    _read: cython.longlong[::1]
    _hashes: cython.ulonglong[::1]

    def __init__(self, max_bytes, load_factor, key0, key1):
        self._max_slots = min(max(max_bytes // (8 * _SLOT_WORDS), 4), 0xFFFFFFFF)
        self._load_factor = load_factor
        self._key0 = key0
        self._key1 = key1
        self._entries = 0
        self._read = memoryview(bytearray(8 * 8 * _AHEAD)).cast("q")
        self._hashes = memoryview(bytearray(8 * 3 * _AHEAD)).cast("Q")
        self._slots = min(self._max_slots, _FIRST_SLOTS)
        self._table = _new_table(self._slots)

    @property
    def entries(self):
        return self._entries

    @property
    def size_bytes(self):
        return self._slots * 8 * _SLOT_WORDS

    def get(self, key):
        view: cython.const[cython.uchar][::1] = key
        hash0: cython.ulonglong
        hash1: cython.ulonglong
        hash0, hash1 = _siphash(view, 0, len(key), self._key0, self._key1)
        offset: cython.longlong = self._table[_find(self._table, self._slots, hash0, hash1) + 2]
        return offset - 1

    @cython.cfunc
    def _grow(self) -> cython.bint:
        """Make room; False where the largest size is reached."""
        if self._slots >= self._max_slots:
            return False
        slots: cython.ulonglong = min(self._slots * _GROWTH_FACTOR, self._max_slots)
        table: cython.ulonglong[::1] = _new_table(slots)
        old: cython.ulonglong[::1] = self._table
        old_slots: cython.ulonglong = self._slots
        with cython.nogil:
            _rehash(old, old_slots, table, slots)
        self._table = table
        self._slots = slots
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _read_ahead(
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
        """Read `count` records, hash the keys of those in [low, high]; the position after them, or -1.

        The places that the hashes have in the table are touched in a loop that does nothing else, so that the
        memory is asked for all of them at once: the table is larger than a cache, and to wait for one place after
        the other would take most of a cleaner's time.
        """
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
        read: cython.longlong[::1] = self._read
        hashes: cython.ulonglong[::1] = self._hashes
        table: cython.ulonglong[::1] = self._table
        slots: cython.ulonglong = self._slots
        for index in range(count):
            start = at
            at, body, timed, time_delta, offset_delta, key_at, key_size, value_size = _record(view, at, end)
            if at < 0 or _overflows(base_offset, offset_delta) or _overflows(base_timestamp, time_delta):
                return -1
            kind = _IN_RANGE if low <= base_offset + offset_delta <= high else _OUT_OF_RANGE
            if kind == _IN_RANGE and key_size >= 0:
                kind = _KEYED
                hashes[index * 2], hashes[index * 2 + 1] = _siphash(
                    view, key_at, key_size, self._key0, self._key1
                )
            read[to] = start
            read[to + 1] = at
            read[to + 2] = body
            read[to + 3] = timed
            read[to + 4] = base_timestamp + time_delta
            read[to + 5] = base_offset + offset_delta
            read[to + 6] = kind
            read[to + 7] = value_size
            to += 8
        for index in range(count):
            hashes[2 * _AHEAD + index] = table[_home(slots, hashes[index * 2]) + 2]
        return at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _put_records(
        self,
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.longlong,
        base_offset: cython.longlong,
        first_offset: cython.longlong,
        limit: cython.longlong,
    ) -> cython.int:
        """Enter the keys of one batch: DONE, FULL or BAD."""
        slot: cython.Py_ssize_t
        some: cython.Py_ssize_t
        index: cython.Py_ssize_t
        read: cython.longlong[::1] = self._read
        hashes: cython.ulonglong[::1] = self._hashes
        table: cython.ulonglong[::1] = self._table
        while count > 0:
            some = min(count, _AHEAD)
            at = self._read_ahead(view, at, end, some, base_offset, 0, first_offset, _INT64_MAX)
            if at < 0:
                return _BAD
            for index in range(some):
                if read[index * 8 + 6] != _KEYED:
                    continue
                slot = _find(table, self._slots, hashes[index * 2], hashes[index * 2 + 1])
                if table[slot + 2] == 0:
                    if self._entries >= limit:
                        return _FULL
                    self._entries += 1
                    table[slot] = hashes[index * 2]
                    table[slot + 1] = hashes[index * 2 + 1]
                table[slot + 2] = read[index * 8 + 5] + 1
            count -= some
        return _DONE if at == end else _BAD

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.returns(
        (
            cython.int,  # DONE, BAD or TOO_FAR
            cython.Py_ssize_t,  # position in `out` after what was written
            cython.longlong,  # records kept
            cython.longlong,  # tombstones among them
            cython.longlong,  # their largest timestamp
        )
    )
    def _filter(
        self,
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.longlong,
        base_offset: cython.longlong,
        base_timestamp: cython.longlong,
        latest: cython.longlong,
        keep_deletes: cython.bint,
        horizon: cython.longlong,
        out: cython.uchar[::1],
        to: cython.Py_ssize_t,
    ):
        """Copy the records that stay. With a `horizon` (not -1) their time deltas are told relative to it."""
        some: cython.Py_ssize_t
        index: cython.Py_ssize_t
        row: cython.Py_ssize_t
        timestamp: cython.longlong
        kept: cython.longlong = 0
        tombstones: cython.longlong = 0
        highest: cython.longlong = _INT64_MIN
        run: cython.Py_ssize_t = at  # kept records from here on are not copied yet
        read: cython.longlong[::1] = self._read
        while count > 0:
            some = min(count, _AHEAD)
            at = self._read_ahead(view, at, end, some, base_offset, base_timestamp, _INT64_MIN, latest)
            if at < 0:
                return _BAD, to, 0, 0, 0
            for index in range(some):
                row = index * 8
                if not self._stays(index, keep_deletes):
                    to = _copy(view, run, read[row], out, to)
                    run = read[row + 1]
                    continue
                timestamp = read[row + 4]
                kept += 1
                tombstones += read[row + 7] < 0
                if timestamp > highest:
                    highest = timestamp
                if horizon >= 0:
                    if _overflows(timestamp, -horizon):
                        return _TOO_FAR, to, 0, 0, 0
                    run = read[row + 1]
                    to = _put_record(view, read[row + 2], read[row + 3], run, timestamp - horizon, out, to)
            count -= some
        if at != end:
            return _BAD, to, 0, 0, 0
        return _DONE, _copy(view, run, at, out, to), kept, tombstones, highest

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _stays(self, index: cython.Py_ssize_t, keep_deletes: cython.bint) -> cython.bint:
        kind: cython.longlong = self._read[index * 8 + 6]
        if kind == _OUT_OF_RANGE:
            return True
        if kind != _KEYED or (self._read[index * 8 + 7] < 0 and not keep_deletes):
            return False
        slot: cython.Py_ssize_t = _find(
            self._table, self._slots, self._hashes[index * 2], self._hashes[index * 2 + 1]
        )
        last: cython.longlong = self._table[slot + 2]
        return last == 0 or self._read[index * 8 + 5] + 1 >= last

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.returns((cython.int, cython.Py_ssize_t, cython.bint))
    def _clean_batch(
        self,
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        row: cython.longlong[::1],
        column: cython.Py_ssize_t,
        action: cython.int,
        latest: cython.longlong,
        now_ms: cython.longlong,
        horizon: cython.longlong,
        out: cython.uchar[::1],
        to: cython.Py_ssize_t,
    ):
        """Write what stays of one batch: (status, position in `out` after it, whether its CRC must be made anew)."""
        end: cython.Py_ssize_t = at + row[column + _SIZE]
        base_offset: cython.longlong = row[column + _BASE_OFFSET]
        base_timestamp: cython.longlong = row[column + _BASE_TIMESTAMP]
        count: cython.longlong = row[column + _COUNT]
        attributes: cython.longlong = row[column + _ATTRIBUTES]
        marked: cython.bint = (attributes & _DELETE_HORIZON) != 0
        deletes: cython.bint = not marked or now_ms < base_timestamp
        first: cython.Py_ssize_t = at + _HEADER
        body: cython.Py_ssize_t = to + _HEADER
        status: cython.int = _DONE
        stop: cython.Py_ssize_t = to
        kept: cython.longlong = 0
        tombstones: cython.longlong = 0
        highest: cython.longlong = -1
        if action == _COPY:
            return _DONE, _copy(view, at, end, out, to), False
        if action == _MARK:
            latest = -1
        if action != _EMPTY:
            status, stop, kept, tombstones, highest = self._filter(
                view, first, end, count, base_offset, base_timestamp, latest, deletes, -1, out, body
            )
            if status != _DONE:
                return status, to, False
        if kept == 0:
            if action != _EMPTY and action != _FILTER_OR_EMPTY:
                return _DONE, to, False
            return _DONE, _put_empty(view, at, attributes, out, to), True
        if not marked and (tombstones > 0 or action == _MARK):
            status, stop, kept, tombstones, highest = self._filter(
                view, first, end, count, base_offset, base_timestamp, latest, deletes, horizon, out, body
            )
            marked = status == _DONE
            if not marked:  # it must do without a horizon
                status, stop, kept, tombstones, highest = self._filter(
                    view, first, end, count, base_offset, base_timestamp, latest, deletes, -1, out, body
                )
        _copy(view, at, first, out, to)
        if marked and not attributes & _DELETE_HORIZON:
            _put(out, to + 21, attributes | _DELETE_HORIZON, 2)
            _put(out, to + 27, horizon, 8)
        elif kept == count:
            return _DONE, stop, False
        _put(out, to + 8, stop - to - 12, 4)
        if not attributes & _LOG_APPEND_TIME:
            _put(out, to + 35, highest, 8)
        _put(out, to + 57, kept, 4)
        return _DONE, stop, True

    def put_rows(
        self,
        data,
        shift: cython.longlong,
        rows,
        start: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        actions,
        first_offset: cython.longlong,
    ):
        _check(data, shift, rows, start, count, actions)
        view: cython.const[cython.uchar][::1] = data
        row: cython.longlong[::1] = rows
        action: cython.const[cython.uchar][::1] = actions
        status: cython.int = _FULL
        # A pass ends before a batch once the map is loaded, and inside one only if it would have no free slot left.
        soft: cython.longlong
        hard: cython.longlong
        while start < count and status == _FULL:
            soft = int(self._slots * self._load_factor)
            hard = self._slots - self._slots // 32 - 1
            status = _DONE
            with cython.nogil:
                while start < count and status == _DONE:
                    status = self._put_row(
                        view, shift, row, start * _ROW, action[start], first_offset, soft, hard
                    )
                    start += status == _DONE
            if status == _FULL and not self._grow():
                break
        return start, (_DONE if start == count else status)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _put_row(
        self,
        view: cython.const[cython.uchar][::1],
        shift: cython.longlong,
        row: cython.longlong[::1],
        column: cython.Py_ssize_t,
        action: cython.int,
        first_offset: cython.longlong,
        soft: cython.longlong,
        hard: cython.longlong,
    ) -> cython.int:
        start: cython.Py_ssize_t = row[column + _POSITION] - shift
        if action == _DROP or row[column + _LAST_OFFSET] < first_offset:
            return _DONE
        if not _is_plain(row, column, action):
            return _PACKED
        if self._entries >= soft:
            return _FULL
        return self._put_records(
            view,
            start + _HEADER,
            start + row[column + _SIZE],
            row[column + _COUNT],
            row[column + _BASE_OFFSET],
            first_offset,
            hard,
        )

    def filter_rows(
        self,
        data,
        shift: cython.longlong,
        rows,
        start: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        actions,
        latest: cython.longlong,
        now_ms: cython.longlong,
        horizon_ms: cython.longlong,
        out,
        to: cython.Py_ssize_t,
    ):
        _check(data, shift, rows, start, count, actions)
        view: cython.const[cython.uchar][::1] = data
        row: cython.longlong[::1] = rows
        action: cython.const[cython.uchar][::1] = actions
        written: cython.uchar[::1] = out
        room: cython.Py_ssize_t = len(out)
        if to < 0 or to > room:
            raise ValueError(f"position {to} does not lie within the {room} bytes of the buffer")
        status: cython.int = _DONE
        at: cython.Py_ssize_t
        index: cython.Py_ssize_t
        before: cython.Py_ssize_t
        changed: cython.bint
        remade: cython.longlong[::1] = memoryview(bytearray(8 * count + 8)).cast("q")
        remade_count: cython.Py_ssize_t = 0
        with cython.nogil:
            while start < count:
                at = start * _ROW
                if action[start] != _DROP:
                    if action[start] != _COPY and not _is_plain(row, at, action[start]):
                        status = _PACKED
                        break
                    if room - to < row[at + _SIZE] + _GROWTH * max(row[at + _COUNT], 0):
                        status = _NO_ROOM
                        break
                    before = to
                    status, to, changed = self._clean_batch(
                        view, row[at + _POSITION] - shift, row, at, action[start], latest, now_ms, horizon_ms,
                        written, to,
                    )  # fmt: skip
                    if status != _DONE:
                        break
                    if changed:
                        remade[remade_count] = before
                        remade_count += 1
                start += 1
        # The CRC's function is Python's, so it waits until here.
        source: memoryview = memoryview(out)
        for index in range(remade_count):
            before = remade[index]
            at = before + 12 + int.from_bytes(source[before + 8 : before + 12], "big")
            _put(written, before + 17, checksum(source[before + 21 : at]), 4)
        return start, to, status


@cython.cfunc
def _new_table(slots):
    return memoryview(bytearray(8 * _SLOT_WORDS * slots)).cast("Q")


@cython.cfunc
def _check(data, shift, rows, start, count, actions):
    """Every batch that the rows name lies within the data."""
    if start < 0 or count < 0 or count > len(rows) // 16 or count > len(actions):
        raise ValueError("rows or actions are too short")
    row: cython.longlong[::1] = rows
    low: cython.longlong = shift
    high: cython.longlong = shift + len(data)
    at: cython.Py_ssize_t
    size: cython.longlong
    least: cython.longlong
    for at in range(0, count * 16, 16):
        size = row[at + _SIZE]
        least = _HEADER if row[at + _MAGIC] == 2 else 26
        if row[at + _POSITION] < low or size < least or size > high - row[at + _POSITION]:
            raise ValueError("a row names bytes that do not lie within the data")
        if row[at + _COUNT] < -1 or row[at + _COUNT] > _INT32_MAX:
            raise ValueError(f"a batch cannot hold {row[at + _COUNT]} records")


def special_rows(rows, count: cython.Py_ssize_t, offsets, keep):
    row: cython.longlong[::1] = rows
    wanted: cython.longlong[::1] = offsets
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // 16 or count > len(keep):
        raise ValueError("rows or keep are too short")
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    last_offset: cython.longlong
    for index in range(count):
        last_offset = row[index * _ROW + _LAST_OFFSET]
        low, high = 0, len(offsets)
        while low < high:
            middle = (low + high) // 2
            if wanted[middle] < last_offset:
                low = middle + 1
            else:
                high = middle
        if (
            row[index * _ROW + _MAGIC] == 2 and row[index * _ROW + _ATTRIBUTES] & _TRANSACTIONAL_OR_CONTROL
        ) or (low < len(offsets) and wanted[low] == last_offset):
            kept[found] = index
            found += 1
    return found
