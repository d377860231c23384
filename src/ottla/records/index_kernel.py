# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over index entries and over the rows that scan() writes; index_kernel.pyi has the contracts."""

from __future__ import annotations

from struct import Struct

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.numbers import read_int32, read_int64
else:
    from ottla.records import columns as col
    from ottla.records.numbers import read_int32, read_int64

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")

_PAGE = cython.declare(cython.Py_ssize_t, 4096)

_BATCHES_KEPT = cython.declare(cython.int, 5)

# What transaction_rows() finds out about a marker. A usual one has a single record of 17 bytes.
_COMMIT = cython.declare(cython.int, 1)
_UNUSUAL = cython.declare(cython.int, -1)
_MARKER_SIZE = cython.declare(cython.Py_ssize_t, 78)


def index_floor(buf, entries: cython.Py_ssize_t, entry_size: cython.Py_ssize_t, target: cython.longlong):
    view: cython.const[cython.uchar][::1] = buf
    if entry_size != 8 and entry_size != 12:
        raise ValueError(f"no index has entries of {entry_size} bytes")
    if entries < 0 or entries > len(buf) // entry_size:
        raise ValueError(f"{entries} entries of {entry_size} bytes do not fit into {len(buf)} bytes")
    wide: cython.bint = entry_size == 12
    at: cython.Py_ssize_t
    low: cython.Py_ssize_t = -1  # its key is <= target, or there is no such slot
    high: cython.Py_ssize_t = entries  # its key is > target, or there is no such slot
    middle: cython.Py_ssize_t = entries - _PAGE // entry_size
    if middle <= low:
        middle = (low + high) // 2
    while high - low > 1:
        at = middle * entry_size
        if (read_int64(view, at) if wide else read_int32(view, at)) <= target:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return low


def index_rows(
    rows,
    count: cython.Py_ssize_t,
    base_offset: cython.longlong,
    interval: cython.longlong,
    state,
    offset_entries: bytearray,
    time_entries: bytearray,
):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = state
    if count < 0 or count > len(rows) // col.ROW or len(state) < 8:
        raise ValueError("rows or state are too short")
    at: cython.Py_ssize_t
    used: cython.Py_ssize_t
    last_offset: cython.longlong
    for used in range(count):
        at = used * col.ROW
        kept[6] = used
        last_offset = row[at + col.LAST_OFFSET]
        if base_offset < 0 or last_offset < base_offset or last_offset - base_offset > col.INT32_MAX:
            return col.BAD_OFFSETS
        if row[at + col.MAX_TIMESTAMP] > kept[1]:
            kept[1] = row[at + col.MAX_TIMESTAMP]
            kept[2] = last_offset
        if kept[0] > interval:
            if last_offset <= kept[3] or row[at + col.POSITION] > col.INT32_MAX:
                return col.BAD_OFFSETS
            offset_entries += _OFFSET_ENTRY.pack(last_offset - base_offset, row[at + col.POSITION])
            kept[3] = last_offset
            if kept[1] > kept[4]:
                time_entries += _TIME_ENTRY.pack(kept[1], kept[2] - base_offset)
                kept[4] = kept[1]
                kept[5] = kept[2]
            kept[0] = 0
        kept[0] += row[at + col.SIZE]
    kept[6] = count
    return col.OK


def producer_rows(rows, count: cython.Py_ssize_t, keep):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // col.ROW or count > len(keep):
        raise ValueError("rows or keep are too short")
    # From the back: per producer, how often an epoch was seen before its next transactional or control batch.
    runs: dict = {}
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = count
    at: cython.Py_ssize_t
    seen: cython.int
    producer_id: cython.longlong
    while index > 0:
        index -= 1
        at = index * col.ROW
        producer_id = row[at + col.PRODUCER_ID]
        if producer_id < 0:
            continue
        if row[at + col.ATTRIBUTES] & (col.TRANSACTIONAL | col.CONTROL):
            runs.pop(producer_id, None)
        else:
            epochs: dict = runs.setdefault(producer_id, {})
            seen = epochs.get(row[at + col.PRODUCER_EPOCH], 0)
            if seen == _BATCHES_KEPT:
                continue
            epochs[row[at + col.PRODUCER_EPOCH]] = seen + 1
        kept[found] = index
        found += 1
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = found - 1
    while low < high:
        kept[low], kept[high] = kept[high], kept[low]
        low += 1
        high -= 1
    return found


def rows_in_order(rows, count: cython.Py_ssize_t, expected: cython.longlong):
    row: cython.longlong[::1] = rows
    if count < 0 or count > len(rows) // col.ROW:
        raise ValueError("rows are too short")
    previous: cython.longlong = expected - 1
    index: cython.Py_ssize_t
    for index in range(count):
        if row[index * col.ROW + col.BASE_OFFSET] <= previous:
            return index
        previous = row[index * col.ROW + col.LAST_OFFSET]
    return count


def epoch_rows(rows, count: cython.Py_ssize_t, latest: cython.longlong, keep):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // col.ROW or count > len(keep):
        raise ValueError("rows or keep are too short")
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(count):
        if row[index * col.ROW + col.LEADER_EPOCH] != latest:
            latest = row[index * col.ROW + col.LEADER_EPOCH]
            kept[found] = index
            found += 1
    return found


@cython.cfunc
@cython.exceptval(check=False)
def _marker_type(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.int:
    """0 (abort) or 1 (commit) if the record of a control batch at `at` is a marker of the usual form."""
    record: cython.Py_ssize_t = at + col.HEADER_SIZE
    # Length 16, attributes, both deltas 0; key of 4 bytes with version 0, type; value of 6 bytes with version 0.
    if view[record] != 0x20 or view[record + 1] or view[record + 2] or view[record + 3]:
        return _UNUSUAL
    if view[record + 4] != 0x08 or view[record + 5] or view[record + 6] or view[record + 7]:
        return _UNUSUAL
    if view[record + 8] > 1 or view[record + 9] != 0x0C or view[record + 10] or view[record + 11]:
        return _UNUSUAL
    return view[record + 8]


def transaction_rows(
    buf,
    rows,
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    shift: cython.longlong,
    from_offset: cython.longlong,
    to_offset: cython.longlong,
    began: dict,
    aborted: list,
):
    view: cython.const[cython.uchar][::1] = buf
    row: cython.longlong[::1] = rows
    if first < 0 or count < first or count > len(rows) // col.ROW:
        raise ValueError("rows are too short")
    size: cython.longlong = len(buf)
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t
    start: cython.longlong
    kind: cython.int
    for index in range(first, count):
        at = index * col.ROW
        if row[at + col.MAGIC] != 2 or not row[at + col.ATTRIBUTES] & col.TRANSACTIONAL:
            continue
        if row[at + col.LAST_OFFSET] < from_offset or row[at + col.BASE_OFFSET] >= to_offset:
            continue
        producer_id = row[at + col.PRODUCER_ID]
        if not row[at + col.ATTRIBUTES] & col.CONTROL:
            if producer_id not in began:
                began[producer_id] = row[at + col.BASE_OFFSET]
            continue
        start = row[at + col.POSITION] - shift
        if (
            row[at + col.COUNT] != 1
            or row[at + col.ATTRIBUTES] & col.CODEC_MASK
            or row[at + col.SIZE] != _MARKER_SIZE
        ):
            return index
        if start < 0 or start > size - _MARKER_SIZE:
            raise ValueError("a batch is not in the buffer")
        kind = _marker_type(view, start)
        if kind == _UNUSUAL:
            return index
        since = began.pop(producer_id, None)
        if since is not None and kind != _COMMIT:
            aborted.append((producer_id, since, row[at + col.BASE_OFFSET]))
    return count
