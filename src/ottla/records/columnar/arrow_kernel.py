# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loop that turns records into Arrow columns: buffers are filled directly, no record becomes a Python object.

arrow_kernel.pyi has the contract, records/kernel.py the rules that keep both ways of running the same. A column that
nobody asked for is walked over and not copied. What does not fit is left for the next buffers: nothing here grows.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.numbers import copy_bytes, overflows, read_int32
    from cython.cimports.ottla.records.record_kernel import check_bounds, read_field, read_record
else:
    from ottla.records import columns as col
    from ottla.records.numbers import copy_bytes, overflows, read_int32
    from ottla.records.record_kernel import check_bounds, read_field, read_record

DONE, FULL, PACKED, BAD, PAST = range(5)
KEY, VALUE, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS = 1, 2, 4, 8, 16, 32

_DONE = cython.declare(cython.int, 0)
_FULL = cython.declare(cython.int, 1)
_PACKED = cython.declare(cython.int, 2)
_BAD = cython.declare(cython.int, 3)
_PAST = cython.declare(cython.int, 4)

_KEY = cython.declare(cython.int, 1)
_VALUE = cython.declare(cython.int, 2)
_OFFSET = cython.declare(cython.int, 4)
_TIMESTAMP = cython.declare(cython.int, 8)
_TIMESTAMP_TYPE = cython.declare(cython.int, 16)
_HEADERS = cython.declare(cython.int, 32)

_MICROSECONDS = cython.declare(cython.longlong, 1000)
_LAST_MILLISECOND = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF // 1000)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _set_bit(bits: cython.uchar[::1], index: cython.Py_ssize_t) -> cython.int:
    bits[index >> 3] |= 1 << (index & 7)
    return 0


def _is_aborted(aborted, count, producer_id, offset):
    """Whether the last transaction of the producer that begins at or before `offset` still runs there."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if aborted[3 * middle] < producer_id or (
            aborted[3 * middle] == producer_id and aborted[3 * middle + 1] <= offset
        ):
            low = middle + 1
        else:
            high = middle
    if low == 0 or aborted[3 * low - 3] != producer_id:
        return False
    return aborted[3 * low - 1] >= offset


class Columns:
    def __init__(self, mask: cython.int, from_offset: cython.longlong, to_offset: cython.longlong):
        self._mask = mask
        self._from_offset = from_offset
        self._to_offset = to_offset
        self._room = 0
        self._rows = 0
        self._resume_at = 0
        self._resume_found = 0
        self._key_need = self._value_need = self._header_need = self._header_bytes_need = 0

    def renew(self, room: cython.Py_ssize_t, header_room: cython.Py_ssize_t, views: tuple):
        """Begin anew in other buffers; where a batch goes on stays known."""
        (
            self._offsets, self._timestamps, self._types, self._key_ends, self._key_bits, self._keys, self._value_ends,
            self._value_bits, self._values, self._list_ends, self._list_bits, self._name_ends, self._names,
            self._data_ends, self._data_bits, self._data,
        ) = views  # fmt: skip
        self._room = room
        self._header_room = header_room
        self._rows = self._headers = 0
        self._key_bytes = self._value_bytes = self._name_bytes = self._data_bytes = 0
        self._null_keys = self._null_values = self._null_lists = self._null_data = 0
        self._plain_names = True

    def state(self):
        return (
            self._rows,
            (self._key_bytes, self._null_keys),
            (self._value_bytes, self._null_values),
            (self._headers, self._null_lists),
            self._name_bytes,
            (self._data_bytes, self._null_data),
            self._plain_names,
        )

    def needs(self):
        return self._key_need, self._value_need, self._header_need, self._header_bytes_need

    def fill(
        self,
        buf,
        rows,
        first: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        shift: cython.Py_ssize_t,
        aborted,
    ):
        view: cython.const[cython.uchar][::1] = buf
        row: cython.longlong[::1] = rows
        gone: cython.longlong[::1] = aborted
        gone_count: cython.Py_ssize_t = len(aborted) // 3
        if first < 0 or count < first or count > len(rows) // col.ROW:
            raise ValueError("rows are too short")
        index: cython.Py_ssize_t = first
        status: cython.int = _DONE
        while index < count:
            at: cython.Py_ssize_t = index * col.ROW
            attributes: cython.longlong = row[at + col.ATTRIBUTES]
            v2: cython.bint = row[at + col.MAGIC] == 2
            if row[at + col.LAST_OFFSET] < self._from_offset or (v2 and attributes & col.CONTROL):
                index += 1
                continue
            if row[at + col.BASE_OFFSET] >= self._to_offset and (v2 or not attributes & col.CODEC_MASK):
                return index, _PAST
            if (
                v2
                and attributes & col.TRANSACTIONAL
                and _is_aborted(gone, gone_count, row[at + col.PRODUCER_ID], row[at + col.BASE_OFFSET])
            ):
                index += 1
                continue
            if attributes & col.CODEC_MASK:
                return index, _PACKED
            start: cython.Py_ssize_t = row[at + col.POSITION] - shift
            check_bounds(start, start + row[at + col.SIZE], len(buf))
            if v2:
                status = self._batch(view, row, at, start)
            else:
                status = self._message(
                    view,
                    row,
                    at,
                    start,
                    0,
                    row[at + col.MAX_TIMESTAMP],
                    row[at + col.ATTRIBUTES] & col.LOG_APPEND_TIME,
                )
            if status != _DONE:
                return index, status
            index += 1
        return index, _DONE

    def fill_messages(
        self,
        buf,
        rows,
        first: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        magic: cython.longlong,
        offset_shift: cython.longlong,
        has_stamp: cython.bint,
        stamp: cython.longlong,
    ):
        view: cython.const[cython.uchar][::1] = buf
        row: cython.longlong[::1] = rows
        if first < 0 or count < first or count > len(rows) // col.ROW:
            raise ValueError("rows are too short")
        index: cython.Py_ssize_t
        at: cython.Py_ssize_t
        start: cython.Py_ssize_t
        status: cython.int
        for index in range(first, count):
            at = index * col.ROW
            start = row[at + col.POSITION]
            check_bounds(start, start + row[at + col.SIZE], len(buf))
            if (
                row[at + col.MAGIC] != magic
                or row[at + col.ATTRIBUTES] & col.CODEC_MASK
                or overflows(row[at + col.BASE_OFFSET], offset_shift)
            ):
                return index, _BAD
            status = self._message(
                view,
                row,
                at,
                start,
                offset_shift,
                stamp if has_stamp else row[at + col.MAX_TIMESTAMP],
                has_stamp,
            )
            if status != _DONE:
                return index, status
        return count, _DONE

    def fill_records(
        self,
        buf,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        rows,
        index: cython.Py_ssize_t,
    ):
        view: cython.const[cython.uchar][::1] = buf
        row: cython.longlong[::1] = rows
        check_bounds(start, end, len(buf))
        if index < 0 or index >= len(rows) // col.ROW:
            raise ValueError("rows are too short")
        return self._records(view, start, end, row, index * col.ROW)

    def _batch(self, view, row, at, start):
        """All records of the uncompressed batch at `start`, or the rest of them."""
        found: cython.longlong
        position: cython.Py_ssize_t
        status: cython.int
        end: cython.Py_ssize_t = start + row[at + col.SIZE]
        first: cython.Py_ssize_t = start + (self._resume_at if self._resume_at else col.HEADER_SIZE)
        found, position, status = self._records(view, first, end, row, at)
        found += self._resume_found
        if status == _FULL:
            self._resume_at = position - start
            self._resume_found = found
            return _FULL
        self._resume_at = 0
        self._resume_found = 0
        if status != _DONE or position != end or found != row[at + col.COUNT]:
            return _BAD
        return _DONE

    def _records(self, view, at, end, row, to):
        """The records in [at, end): (how many were passed, position after the last, DONE / FULL / PACKED / BAD).

        PACKED: the record at that position is not all there."""
        after: cython.Py_ssize_t
        time_delta: cython.longlong
        offset_delta: cython.longlong
        key: cython.Py_ssize_t
        key_size: cython.longlong
        value: cython.Py_ssize_t
        value_size: cython.longlong
        headers_at: cython.Py_ssize_t
        header_count: cython.longlong
        offset: cython.longlong
        timestamp: cython.longlong
        found: cython.longlong = 0
        base_offset: cython.longlong = row[to + col.BASE_OFFSET]
        base_timestamp: cython.longlong = row[to + col.BASE_TIMESTAMP]
        stamp: cython.longlong = row[to + col.MAX_TIMESTAMP]
        kind: cython.int = 1 if row[to + col.ATTRIBUTES] & col.LOG_APPEND_TIME else 0
        while at < end:
            after, time_delta, offset_delta, key, key_size, value, value_size, headers_at, header_count = (
                read_record(view, at, end)
            )
            if after < 0:
                return found, at, _PACKED if after == -1 else _BAD
            if overflows(base_offset, offset_delta) or overflows(base_timestamp, time_delta):
                return found, at, _BAD
            offset = base_offset + offset_delta
            if offset >= self._from_offset and offset < self._to_offset:
                timestamp = stamp if kind == 1 else base_timestamp + time_delta
                if not self._fits(key_size, value_size, header_count, after - headers_at):
                    return found, at, _FULL
                self._put(view, offset, timestamp, kind, key, key_size, value, value_size)
                if self._mask & _HEADERS:
                    self._put_headers(view, headers_at, after, header_count)
                self._rows += 1
            found += 1
            at = after
        return found, at, _DONE

    def _message(self, view, row, at, start, offset_shift, timestamp, is_stamped):
        """The one record of a plain message of magic 0 or 1."""
        offset: cython.longlong = row[at + col.BASE_OFFSET] + offset_shift
        if offset < self._from_offset or offset >= self._to_offset:
            return _DONE
        end: cython.Py_ssize_t = start + row[at + col.SIZE]
        old: cython.bint = row[at + col.MAGIC] == 0
        key: cython.Py_ssize_t = start + (22 if old else 30)
        if end - key < 4:
            return _BAD
        key_size: cython.longlong = read_int32(view, key - 4)
        value: cython.Py_ssize_t = key + 4
        if key_size < -1 or key_size > end - value:
            return _BAD
        if key_size > 0:
            value += key_size
        value_size: cython.longlong = read_int32(view, value - 4)
        if value_size < -1 or (value_size if value_size > 0 else 0) != end - value:
            return _BAD
        kind: cython.int = 1 if is_stamped else 0
        if old:
            kind = -1
        if not self._fits(key_size, value_size, 0, 0):
            return _FULL
        self._put(view, offset, timestamp, kind, key, key_size, value, value_size)
        if self._mask & _HEADERS:
            self._put_headers(view, end, end, 0)
        self._rows += 1
        return _DONE

    def _fits(self, key_size, value_size, header_count, header_bytes):
        fits: cython.bint = self._rows < self._room
        if self._mask & _KEY:
            fits = fits and self._key_bytes + key_size <= self._keys.shape[0]
        if self._mask & _VALUE:
            fits = fits and self._value_bytes + value_size <= self._values.shape[0]
        if self._mask & _HEADERS and header_count:
            fits = (
                fits
                and self._headers + header_count <= self._header_room
                and self._name_bytes + header_bytes <= self._names.shape[0]
                and self._data_bytes + header_bytes <= self._data.shape[0]
            )
        if not fits:
            self._key_need = key_size if key_size > 0 else 0
            self._value_need = value_size if value_size > 0 else 0
            self._header_need = header_count
            self._header_bytes_need = header_bytes
        return fits

    def _put(self, view, offset, timestamp, kind, key, key_size, value, value_size):
        to: cython.Py_ssize_t = self._rows
        mask: cython.int = self._mask
        if mask & _OFFSET:
            self._offsets[to] = offset
        if mask & _TIMESTAMP:
            if timestamp > _LAST_MILLISECOND:
                timestamp = _LAST_MILLISECOND
            elif timestamp < -_LAST_MILLISECOND:
                timestamp = -_LAST_MILLISECOND
            self._timestamps[to] = timestamp * _MICROSECONDS
        if mask & _TIMESTAMP_TYPE:
            self._types[to] = kind
        if mask & _KEY:
            if key_size >= 0:
                _set_bit(self._key_bits, to)
                self._key_bytes = copy_bytes(view, key, key_size, self._keys, self._key_bytes)
            else:
                self._null_keys += 1
            self._key_ends[to + 1] = self._key_bytes
        if mask & _VALUE:
            if value_size >= 0:
                _set_bit(self._value_bits, to)
                self._value_bytes = copy_bytes(view, value, value_size, self._values, self._value_bytes)
            else:
                self._null_values += 1
            self._value_ends[to + 1] = self._value_bytes
        return 0

    def _put_headers(self, view, at, end, count):
        """The record's headers; one without any has null, not an empty list, as Spark's Kafka source has it."""
        size: cython.longlong
        start: cython.Py_ssize_t
        index: cython.Py_ssize_t
        if count > 0:
            _set_bit(self._list_bits, self._rows)
        else:
            self._null_lists += 1
        while count > 0:
            size, start, at = read_field(view, at, end)
            for index in range(start, start + size):
                if view[index] >= 0x80:
                    self._plain_names = False
            self._name_bytes = copy_bytes(view, start, size, self._names, self._name_bytes)
            self._name_ends[self._headers + 1] = self._name_bytes
            size, start, at = read_field(view, at, end)
            if size >= 0:
                _set_bit(self._data_bits, self._headers)
                self._data_bytes = copy_bytes(view, start, size, self._data, self._data_bytes)
            else:
                self._null_data += 1
            self._data_ends[self._headers + 1] = self._data_bytes
            self._headers += 1
            count -= 1
        self._list_ends[self._rows + 1] = self._headers
        return 0
