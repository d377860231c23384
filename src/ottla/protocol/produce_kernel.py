# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Finds Produce requests that came one behind another and differ in nothing but their records.

A producer that has several requests under way sends such runs. produce_kernel.pyi has the contract. Interpreted, this
is slower than reading one request after another; then nobody uses it.
"""

from __future__ import annotations

import cython

from ottla.protocol.wire import read_id

if cython.compiled:
    from cython.cimports.ottla.protocol.request_kernel import read_int16, read_int32, read_stop, read_string
else:
    from ottla.protocol.request_kernel import read_int16, read_int32, read_stop, read_string

COMPILED = cython.compiled

_PREFIX = cython.declare(cython.Py_ssize_t, 4)
_HEAD = cython.declare(cython.Py_ssize_t, 10)  # API, version, correlation id, length of the client id
_CORRELATION_ID = cython.declare(cython.Py_ssize_t, 4)
_CLIENT_ID = cython.declare(cython.Py_ssize_t, 8)
_BEFORE_TOPIC = cython.declare(cython.Py_ssize_t, 8)  # transactional id, acks, timeout, number of topics
_TOPIC_ID = cython.declare(cython.Py_ssize_t, 16)
_TAGS = cython.declare(cython.Py_ssize_t, 3)  # of partition, topic and request
_ONE = cython.declare(cython.int, 2)  # entry, as arrays count them
_FIRST_VERSION = cython.declare(cython.int, 9)
_TOPIC_IDS_SINCE = cython.declare(cython.int, 13)
_BATCH_HEADER = cython.declare(cython.Py_ssize_t, 61)
_PLACE = cython.declare(cython.Py_ssize_t, 4)


@cython.cfunc
@cython.exceptval(check=False)
def _frame_stop(
    buf: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    max_size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Where the frame at `start` ends if it is here whole, and not too large; else -1."""
    if end - start < _PREFIX:
        return -1
    size: cython.longlong = read_int32(buf, start)
    if size < _HEAD or size > max_size or size > end - start - _PREFIX:
        return -1
    return start + _PREFIX + cython.cast(cython.Py_ssize_t, size)


@cython.cfunc
@cython.exceptval(check=False)
def _topic_at(
    buf: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the one topic of a Produce request begins, or -1 if this is no such request."""
    if buf[start] or buf[start + 1] or buf[start + 2]:
        return -1
    if not _FIRST_VERSION <= buf[start + 3] <= _TOPIC_IDS_SINCE:
        return -1
    length: cython.Py_ssize_t = read_int16(buf, start + _CLIENT_ID)
    position: cython.Py_ssize_t = start + _HEAD + (length if length > 0 else 0)
    index: cython.Py_ssize_t
    if stop - position <= _BEFORE_TOPIC + 1 or buf[position] or buf[position + 1]:  # tags, a transactional id
        return -1
    for index in range(start + _HEAD, position):
        if buf[index] >= 128:  # which may be no text at all
            return -1
    position += 1 + _BEFORE_TOPIC
    return position if buf[position - 1] == _ONE else -1


@cython.cfunc
@cython.exceptval(check=False)
def _records_at(
    buf: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the records begin whose length is at `position`, if they are one plain batch that ends the request."""
    size: cython.longlong = 0
    shift: cython.int = 0
    byte: cython.int = 128
    while byte >= 128:
        if position >= stop or shift > 28:
            return -1
        byte = buf[position]
        position += 1
        size |= cython.cast(cython.longlong, byte & 127) << shift
        shift += 7
    if size - 1 < _BATCH_HEADER or size - 1 != stop - position - _TAGS:
        return -1
    if buf[stop - 1] or buf[stop - 2] or buf[stop - 3]:
        return -1
    # Not of an old format, nor compressed, nor part of a transaction.
    if buf[position + 16] != 2 or buf[position + 21] or buf[position + 22]:
        return -1
    return position


@cython.cfunc
@cython.exceptval(check=False)
def _same(
    buf: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    second: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.bint:
    """Whether two requests are the same up to their records, but for the correlation id."""
    index: cython.Py_ssize_t
    for index in range(size):
        if buf[first + index] != buf[second + index] and not _CORRELATION_ID <= index < _CLIENT_ID:
            return False
    return True


def read_run(
    received,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    max_size: cython.Py_ssize_t,
    places,
):
    buf: cython.const[cython.uchar][::1] = received
    place: cython.longlong[::1] = places
    if start < 0 or start > end or end > len(buf):
        raise ValueError(f"[{start}, {end}) does not lie within the {len(buf)} bytes of the buffer")
    stop: cython.Py_ssize_t = _frame_stop(buf, start, end, max_size)
    first: cython.Py_ssize_t = start + _PREFIX
    position: cython.Py_ssize_t = -1 if stop < 0 else _topic_at(buf, first, stop)
    if position < 0:
        return None
    topic: cython.Py_ssize_t = position
    by_id: cython.bint = buf[first + 3] >= _TOPIC_IDS_SINCE
    position = topic + _TOPIC_ID if by_id else read_stop(buf, topic, stop)
    # A name is not null, and one partition follows it.
    if position < 0 or stop - position < 6 or buf[position] != _ONE or (not by_id and not buf[topic]):
        return None
    index = read_int32(buf, position + 1)
    head_size: cython.Py_ssize_t = position + 5 - first
    room: cython.Py_ssize_t = len(places) // 4
    count: cython.Py_ssize_t = 0
    records: cython.Py_ssize_t
    at: cython.Py_ssize_t = first
    while count < room:
        records = _records_at(buf, at + head_size, stop)
        if records < 0:
            break
        place[count * _PLACE] = read_int32(buf, at + _CORRELATION_ID)
        place[count * _PLACE + 1] = records
        place[count * _PLACE + 2] = stop - _TAGS - records
        place[count * _PLACE + 3] = stop
        count += 1
        at = stop + _PREFIX
        stop = _frame_stop(buf, stop, end, max_size)
        if stop - at < head_size or not _same(buf, first, at, head_size):
            break
    if not count:
        return None
    name = None
    topic_id = None
    if by_id:
        topic_id = read_id(bytes(received[topic : topic + _TOPIC_ID]))
    else:
        try:
            name = read_string(received, buf, topic, position)
        except UnicodeDecodeError:
            return None
    acks = read_int16(buf, topic - 7)
    return count, cython.cast(cython.int, buf[first + 3]), acks, name, topic_id, index
