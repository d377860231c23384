# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The cleaner's map: which offset is the last for each key.

Slots of three words, the two halves of a key's hash and the offset + 1 (0 where a slot is free); a search goes from
where the hash points to the next free slot. compact_kernel.py says what becomes of a record that is not the last.
"""

from __future__ import annotations

import cython

from ottla.records.cleaning.ahead_kernel import siphash

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.cleaning import codes as clean
    from cython.cimports.ottla.records.cleaning.ahead_kernel import Ahead
    from cython.cimports.ottla.records.numbers import LLONG_MAX
else:
    from ottla.records import columns as col
    from ottla.records.cleaning import codes as clean
    from ottla.records.cleaning.ahead_kernel import Ahead
    from ottla.records.numbers import LLONG_MAX

_SLOT_WORDS = 3
_FIRST_SLOTS = 1 << 12
_GROWTH_FACTOR = 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _home(slots: cython.ulonglong, hash0: cython.ulonglong) -> cython.Py_ssize_t:
    """The first word of the slot where a search for the hash begins."""
    return ((hash0 >> 32) * slots >> 32) * 3


def _find(table, slots, hash0, hash1):
    """The first word of the slot that has this hash, or of the free one where it belongs."""
    at: cython.Py_ssize_t = _home(slots, hash0)
    end: cython.Py_ssize_t = slots * 3
    while table[at + 2] != 0 and (table[at] != hash0 or table[at + 1] != hash1):
        at += 3
        if at == end:
            at = 0
    return at


def _rehash(old, old_slots, new, slots):
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


def is_plain(row, column, action):
    """Whether the action can be done where the batch lies. To empty a batch, its records need not be opened."""
    return row[column + col.MAGIC] == 2 and (
        action == clean.EMPTY or not row[column + col.ATTRIBUTES] & col.CODEC_MASK
    )


class OffsetMap:
    """The last offset of each key, and the records that are held against it."""

    def __init__(self, max_bytes, load_factor, key0, key1):
        self._max_slots = min(max(max_bytes // (8 * _SLOT_WORDS), 4), 0xFFFFFFFF)
        self._load_factor = load_factor
        self._entries = 0
        self.ahead = Ahead(key0, key1)
        self._touched = memoryview(bytearray(8 * clean.READ_AHEAD)).cast("Q")
        self._slots = min(self._max_slots, _FIRST_SLOTS)
        self._table = _new_table(self._slots)

    @property
    def entries(self):
        return self._entries

    @property
    def size_bytes(self):
        return self._slots * 8 * _SLOT_WORDS

    def get(self, key):
        hash0: cython.ulonglong
        hash1: cython.ulonglong
        hash0, hash1 = siphash(key, self.ahead.key0, self.ahead.key1)
        offset: cython.longlong = self._table[_find(self._table, self._slots, hash0, hash1) + 2]
        return offset - 1

    def _grow(self):
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

    def read_ahead(self, view, at, end, count, base_offset, base_timestamp, low, high):
        """Ahead.read, with the memory that its hashes point to on its way.

        The places that they have in the table are touched in a loop that does nothing else, so that the memory is
        asked for all of them at once: the table is larger than a cache, and to wait for one place after the other
        would take most of a cleaner's time.
        """
        index: cython.Py_ssize_t
        slots: cython.ulonglong = self._slots
        table: cython.ulonglong[::1] = self._table
        hashes: cython.ulonglong[::1] = self.ahead.hashes
        touched: cython.ulonglong[::1] = self._touched
        at = self.ahead.read(view, at, end, count, base_offset, base_timestamp, low, high)
        if at >= 0:
            for index in range(count):
                touched[index] = table[_home(slots, hashes[index * 2]) + 2]
        return at

    def look_up(self, count):
        """Mark those of the records read ahead of which a later one has the key."""
        slot: cython.Py_ssize_t
        index: cython.Py_ssize_t
        last: cython.longlong
        slots: cython.ulonglong = self._slots
        rows: cython.longlong[::1] = self.ahead.rows
        hashes: cython.ulonglong[::1] = self.ahead.hashes
        table: cython.ulonglong[::1] = self._table
        for index in range(count):
            if rows[index * col.AHEAD_ROW + col.AHEAD_KIND] == clean.KEYED:
                slot = _find(table, slots, hashes[index * 2], hashes[index * 2 + 1])
                last = table[slot + 2]
                if last != 0 and rows[index * col.AHEAD_ROW + col.AHEAD_OFFSET] + 1 < last:
                    rows[index * col.AHEAD_ROW + col.AHEAD_KIND] = clean.OLDER
        return 0

    def _put_records(self, view, at, end, count, base_offset, first_offset, limit):
        """Enter the keys of one batch: DONE, FULL or BAD."""
        slot: cython.Py_ssize_t
        some: cython.Py_ssize_t
        index: cython.Py_ssize_t
        rows: cython.longlong[::1] = self.ahead.rows
        hashes: cython.ulonglong[::1] = self.ahead.hashes
        table: cython.ulonglong[::1] = self._table
        while count > 0:
            some = min(count, clean.READ_AHEAD)
            at = self.read_ahead(view, at, end, some, base_offset, 0, first_offset, LLONG_MAX)
            if at < 0:
                return clean.BAD
            for index in range(some):
                if rows[index * col.AHEAD_ROW + col.AHEAD_KIND] != clean.KEYED:
                    continue
                slot = _find(table, self._slots, hashes[index * 2], hashes[index * 2 + 1])
                if table[slot + 2] == 0:
                    if self._entries >= limit:
                        return clean.FULL
                    self._entries += 1
                    table[slot] = hashes[index * 2]
                    table[slot + 1] = hashes[index * 2 + 1]
                table[slot + 2] = rows[index * col.AHEAD_ROW + col.AHEAD_OFFSET] + 1
            count -= some
        return clean.DONE if at == end else clean.BAD

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
        check_batches(data, shift, rows, start, count, actions)
        view: cython.const[cython.uchar][::1] = data
        row: cython.longlong[::1] = rows
        action: cython.const[cython.uchar][::1] = actions
        status: cython.int = clean.FULL
        # A pass ends before a batch once the map is loaded, and inside one only if it would have no free slot left.
        soft: cython.longlong
        hard: cython.longlong
        while start < count and status == clean.FULL:
            soft = int(self._slots * self._load_factor)
            hard = self._slots - self._slots // 32 - 1
            status = clean.DONE
            with cython.nogil:
                while start < count and status == clean.DONE:
                    status = self._put_row(
                        view, shift, row, start * col.ROW, action[start], first_offset, soft, hard
                    )
                    start += status == clean.DONE
            if status == clean.FULL and not self._grow():
                break
        return start, (clean.DONE if start == count else status)

    def _put_row(self, view, shift, row, column, action, first_offset, soft, hard):
        start: cython.Py_ssize_t = row[column + col.POSITION] - shift
        if action == clean.DROP or row[column + col.LAST_OFFSET] < first_offset:
            return clean.DONE
        if not is_plain(row, column, action):
            return clean.PACKED
        if self._entries >= soft:
            return clean.FULL
        return self._put_records(
            view,
            start + col.HEADER_SIZE,
            start + row[column + col.SIZE],
            row[column + col.COUNT],
            row[column + col.BASE_OFFSET],
            first_offset,
            hard,
        )


@cython.cfunc
def _new_table(slots):
    return memoryview(bytearray(8 * _SLOT_WORDS * slots)).cast("Q")


def check_batches(data, shift, rows, start, count, actions):
    """Every batch that the rows name lies within the data."""
    if start < 0 or count < 0 or count > len(rows) // col.ROW or count > len(actions):
        raise ValueError("rows or actions are too short")
    row: cython.longlong[::1] = rows
    low: cython.longlong = shift
    high: cython.longlong = shift + len(data)
    at: cython.Py_ssize_t
    size: cython.longlong
    least: cython.longlong
    for at in range(0, count * col.ROW, col.ROW):
        size = row[at + col.SIZE]
        least = col.HEADER_SIZE if row[at + col.MAGIC] == 2 else col.LEGACY_SIZE
        if row[at + col.POSITION] < low or size < least or size > high - row[at + col.POSITION]:
            raise ValueError("a row names bytes that do not lie within the data")
        if row[at + col.COUNT] < -1 or row[at + col.COUNT] > col.INT32_MAX:
            raise ValueError(f"a batch cannot hold {row[at + col.COUNT]} records")
