# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops with which `ottla log verify` holds scanned batches against their neighbours and index files.

check_kernel.pyi has the contracts. What these loops find goes to Python as numbers, a few at a time: a healthy log
gives none, so that its batches never cost a step of the interpreter.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.ottla.records import columns as col
    from cython.cimports.ottla.records.numbers import LLONG_MAX, read_int32, read_int64
    from cython.cimports.ottla.records.record_kernel import check_bounds
else:
    from ottla.records import columns as col
    from ottla.records.numbers import LLONG_MAX, read_int32, read_int64
    from ottla.records.record_kernel import check_bounds

CHECK_STATE = 20
(
    EXPECTED_OFFSET,
    PREVIOUS_BASE,
    PREVIOUS_EXPECTED,
    GAPS,
    FIRST_GAP_POSITION,
    FIRST_GAP_OFFSET,
    FIRST_GAP_SIZE,
    THIN_BATCHES,
    RECORDS,
    EPOCH,
    EPOCH_ENTRY,
    EPOCH_WRONG,
    BATCHES,
    LARGEST_TIMESTAMP,
    RESUME_OFFSET,
) = range(15)

FOUND = 4
OVERLAP, EPOCH_DIFFERS, EPOCH_AGREES, EPOCH_FALLS, RESUMES = range(1, 6)

NOT_ASCENDING, NO_BATCH, WRONG_OFFSET, WRONG_TIMESTAMP, NOT_LARGEST, INSIDE_BATCH, PAST_BATCH = range(1, 8)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _note(
    found: cython.longlong[::1],
    room: cython.Py_ssize_t,
    used: cython.Py_ssize_t,
    kind: cython.longlong,
    first: cython.longlong,
    second: cython.longlong,
    third: cython.longlong,
) -> cython.Py_ssize_t:
    """Write one finding if there is room; what does not fit is only counted."""
    at: cython.Py_ssize_t = used * 4
    if used < room:
        found[at] = kind
        found[at + 1] = first
        found[at + 2] = second
        found[at + 3] = third
    return used + 1


def check_rows(rows, count: cython.Py_ssize_t, state, epochs, found):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = state
    known: cython.longlong[::1] = epochs
    epoch_count: cython.Py_ssize_t = len(epochs) // 2
    out: cython.longlong[::1] = found
    room: cython.Py_ssize_t = len(found) // 4
    if count < 0 or count > len(rows) // col.ROW or len(state) < 20:
        raise ValueError("rows or state are too short")
    used: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(count):
        used = _check_order(row, index, kept, out, room, used)
        used = _check_epoch(row, index, kept, known, epoch_count, out, room, used)
        if row[index * col.ROW + col.MAX_TIMESTAMP] > kept[13]:
            kept[13] = row[index * col.ROW + col.MAX_TIMESTAMP]
        kept[12] += 1
    return used


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _check_order(
    row: cython.longlong[::1],
    index: cython.Py_ssize_t,
    kept: cython.longlong[::1],
    out: cython.longlong[::1],
    room: cython.Py_ssize_t,
    used: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    at: cython.Py_ssize_t = index * col.ROW
    base: cython.longlong = row[at + col.BASE_OFFSET]
    last: cython.longlong = row[at + col.LAST_OFFSET]
    expected: cython.longlong = kept[0]
    wraps: cython.bint = _is_wrapper(row, at)
    if base < expected:
        # If this batch follows on where the one before should have begun, it is that one's offset that is wrong.
        blame: cython.bint = kept[1] > kept[2] >= 0 and base - kept[2] == expected - kept[1]
        used = _note(out, room, used, 1, index, expected, kept[2] if blame else -1)
        if blame and kept[3] > 0:
            kept[3] -= 1  # what looked like a gap before it
        # Where the next batch begins if only this one's offset is wrong.
        kept[14] = expected + (last - base) + 1 if not blame and expected < LLONG_MAX - (last - base) else -1
    elif base > expected and not wraps:
        if base == kept[14]:
            used = _note(out, room, used, 5, index, kept[2], 0)
        else:
            if kept[3] == 0:
                kept[4] = row[at + col.POSITION]
                kept[5] = expected
                kept[6] = base - expected
            kept[3] += 1
        kept[14] = -1
    else:
        kept[14] = -1
    if row[at + col.MAGIC] == 2 and row[at + col.COUNT] <= row[at + col.LAST_DELTA]:
        kept[7] += 1
    if row[at + col.COUNT] > 0:
        kept[8] += row[at + col.COUNT]
    kept[1] = base
    kept[2] = expected
    kept[0] = last + 1 if last < LLONG_MAX else last
    return used


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _check_epoch(
    row: cython.longlong[::1],
    index: cython.Py_ssize_t,
    kept: cython.longlong[::1],
    known: cython.longlong[::1],
    epoch_count: cython.Py_ssize_t,
    out: cython.longlong[::1],
    room: cython.Py_ssize_t,
    used: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    at: cython.Py_ssize_t = index * col.ROW
    if row[at + col.MAGIC] < 2:
        return used
    epoch: cython.longlong = row[at + col.LEADER_EPOCH]
    if epoch_count == 0:
        if epoch < kept[9]:
            used = _note(out, room, used, 4, index, kept[9], 0)
        kept[9] = epoch
        return used
    entry: cython.Py_ssize_t = kept[10]
    while entry >= 0 and known[2 * entry + 1] > row[at + col.BASE_OFFSET]:  # a wrong offset had led too far
        entry -= 1
    while entry + 1 < epoch_count and known[2 * entry + 3] <= row[at + col.BASE_OFFSET]:
        entry += 1
    moved: cython.bint = entry != kept[10]
    kept[10] = entry
    right: cython.longlong = known[2 * entry] if entry >= 0 else -1
    if epoch == right:
        if kept[11]:
            used = _note(out, room, used, 3, index, right, moved)
            kept[11] = 0
    else:
        used = _note(out, room, used, 2, index, right, moved)
        kept[11] = 1
    kept[9] = epoch
    return used


def codec_rows(rows, count: cython.Py_ssize_t, keep):
    row: cython.longlong[::1] = rows
    kept: cython.longlong[::1] = keep
    if count < 0 or count > len(rows) // col.ROW or count > len(keep):
        raise ValueError("rows or keep are too short")
    found: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(count):
        if row[index * col.ROW + col.ATTRIBUTES] & col.CODEC_MASK:
            kept[found] = index
            found += 1
    return found


def check_offset_entries(
    rows,
    count: cython.Py_ssize_t,
    entries,
    slot: cython.Py_ssize_t,
    total: cython.Py_ssize_t,
    base_offset: cython.longlong,
    found,
):
    row: cython.longlong[::1] = rows
    view: cython.const[cython.uchar][::1] = entries
    out: cython.longlong[::1] = found
    room: cython.Py_ssize_t = len(found) // 4
    if count < 1 or count > len(rows) // col.ROW or slot < 0 or total > len(entries) // 8:
        raise ValueError("rows or entries are too short")
    end: cython.longlong = row[(count - 1) * col.ROW + col.POSITION] + row[(count - 1) * col.ROW + col.SIZE]
    used: cython.Py_ssize_t = 0
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    relative: cython.longlong
    position: cython.longlong
    while slot < total:
        relative = read_int32(view, slot * 8)
        position = read_int32(view, slot * 8 + 4)
        if position >= end:
            break
        low = 0
        high = count
        while low < high:  # the first row at or past the position
            middle = (low + high) // 2
            if row[middle * col.ROW + col.POSITION] < position:
                low = middle + 1
            else:
                high = middle
        if slot > 0 and (
            relative <= read_int32(view, slot * 8 - 8) or position <= read_int32(view, slot * 8 - 4)
        ):
            used = _note(out, room, used, 1, slot, relative + base_offset, position)
        elif low == count or row[low * col.ROW + col.POSITION] != position or position <= 0:
            used = _note(out, room, used, 2, slot, relative + base_offset, position)
        elif row[low * col.ROW + col.LAST_OFFSET] < relative + base_offset:
            used = _note(out, room, used, 7, slot, low, row[low * col.ROW + col.LAST_OFFSET])
        elif row[low * col.ROW + col.LAST_OFFSET] != relative + base_offset:
            used = _note(out, room, used, 3, slot, low, row[low * col.ROW + col.LAST_OFFSET])
        slot += 1
    return slot, used


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_wrapper(
    row: cython.longlong[::1],
    at: cython.Py_ssize_t,
) -> cython.bint:
    """A compressed message of the old formats, of which only the last offset is known from outside."""
    return row[at + col.MAGIC] < 2 and row[at + col.ATTRIBUTES] & col.CODEC_MASK != 0


def check_time_entries(
    rows,
    count: cython.Py_ssize_t,
    entries,
    slot: cython.Py_ssize_t,
    total: cython.Py_ssize_t,
    base_offset: cython.longlong,
    largest: cython.longlong,
    found,
):
    row: cython.longlong[::1] = rows
    view: cython.const[cython.uchar][::1] = entries
    out: cython.longlong[::1] = found
    room: cython.Py_ssize_t = len(found) // 4
    if count < 0 or count > len(rows) // col.ROW or slot < 0 or total > len(entries) // 12:
        raise ValueError("rows or entries are too short")
    used: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t
    timestamp: cython.longlong
    offset: cython.longlong
    kind: cython.longlong
    for index in range(count):
        at = index * col.ROW
        while slot < total:
            timestamp = read_int64(view, slot * 12)
            offset = read_int32(view, slot * 12 + 8) + base_offset
            if offset > row[at + col.LAST_OFFSET]:
                break
            kind = 0
            if slot > 0 and (
                timestamp <= read_int64(view, slot * 12 - 12)
                or offset <= read_int32(view, slot * 12 - 4) + base_offset
            ):
                kind = 1
            elif offset < row[at + col.BASE_OFFSET] and not _is_wrapper(row, at):
                kind = 2
            elif timestamp != row[at + col.MAX_TIMESTAMP]:
                kind = 4
            elif largest >= timestamp:
                kind = 5
            elif offset != row[at + col.LAST_OFFSET]:
                kind = 6
            if kind:
                used = _note(out, room, used, kind, slot, offset, index)
            slot += 1
        if row[at + col.MAX_TIMESTAMP] > largest:
            largest = row[at + col.MAX_TIMESTAMP]
    return slot, used, largest


def find_header(
    buf,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    min_offset: cython.longlong,
    max_offset: cython.longlong,
    max_size: cython.longlong,
):
    view: cython.const[cython.uchar][::1] = buf
    check_bounds(start, end, len(buf))
    at: cython.Py_ssize_t = start
    length: cython.longlong
    offset: cython.longlong
    magic: cython.int
    with cython.nogil:
        while at + col.LEGACY_SIZE <= end:
            magic = view[at + 16]
            if magic <= 2:
                length = read_int32(view, at + 8)
                offset = read_int64(view, at)
                if (
                    length >= (49 if magic == 2 else 14)
                    and length <= max_size
                    and min_offset <= offset
                    and offset < max_offset
                ):
                    break
            at += 1
    return at
