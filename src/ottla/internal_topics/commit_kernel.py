# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops over the offsets of a commit: out of the request, into records of `__consumer_offsets`, into the state.

commit_kernel.pyi has the contracts. A consumer commits all its partitions again and again; on the way of a commit, only
what is here looks at single offsets.
"""

from __future__ import annotations

import cython

from ottla.internal_topics.packing import compact_string

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.records.numbers import varint_size, zigzag
else:
    from ottla.records.numbers import varint_size, zigzag

_NO_METADATA = b"\1"  # a compact string of no bytes
_KEY_REST = cython.declare(cython.Py_ssize_t, 4)  # the partition
_VALUE_HEAD = cython.declare(cython.Py_ssize_t, 14)  # version, offset, leader epoch
_TIME = cython.declare(cython.Py_ssize_t, 8)
_VALUE_VERSION = cython.declare(cython.int, 4)


@cython.no_gc  # what it refers to refers to nothing
@cython.freelist(64)
@cython.cclass
class CommittedOffset:
    offset = cython.declare(cython.longlong, visibility="readonly")
    leader_epoch = cython.declare(cython.int, visibility="readonly")
    metadata = cython.declare(object, visibility="readonly")
    commit_timestamp = cython.declare(cython.longlong, visibility="readonly")
    expire_timestamp = cython.declare(cython.longlong, visibility="readonly")
    topic_id = cython.declare(object, visibility="readonly")
    written_at = cython.declare(cython.longlong, visibility="public")

    def __init__(
        self,
        offset,
        leader_epoch,
        metadata,
        commit_timestamp,
        expire_timestamp=-1,
        topic_id=None,
        written_at=-1,
    ):
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
        self.written_at = written_at

    def _fields(self):
        return (
            self.offset,
            self.leader_epoch,
            self.metadata,
            self.commit_timestamp,
            self.expire_timestamp,
            self.topic_id,
        )

    def __eq__(self, other):
        return isinstance(other, CommittedOffset) and self._fields() == other._fields()

    def __repr__(self):
        return f"CommittedOffset{self._fields()}"


def are_there(entries: list, count: cython.longlong) -> bool:
    index: cython.longlong
    entry: tuple
    for entry in entries:
        index = entry[0]
        if not 0 <= index < count:
            return False
    return True


def partitions_of(entries: list) -> tuple:
    return tuple([entry[0] for entry in entries])


def longest_metadata(entries: list) -> int:
    longest: cython.Py_ssize_t = 0
    entry: tuple
    for entry in entries:
        metadata: str = entry[3]
        if len(metadata) > longest:
            longest = len(metadata)
    return longest


def store_commits(
    stored: dict,
    entries: list,
    written_at: cython.longlong,
    commit_timestamp: cython.longlong,
    expire_timestamp: cython.longlong,
    topic_id,
) -> None:
    entry: tuple
    for entry in entries:
        value: CommittedOffset = CommittedOffset.__new__(CommittedOffset)
        value.offset = entry[1]
        value.leader_epoch = entry[2]
        value.metadata = entry[3]
        value.commit_timestamp = commit_timestamp
        value.expire_timestamp = expire_timestamp
        value.topic_id = topic_id
        value.written_at = written_at
        stored[entry[0]] = value
        written_at += 1


# -- records


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(data: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    bits: cython.ulonglong = zigzag(value)
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


def put_commits(
    out: bytearray,
    time_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: bytes,
    entries: list,
    timestamp: cython.longlong,
    tags: bytes,
) -> None:
    entry: tuple
    for entry in entries:
        metadata: bytes = compact_string(entry[3]) if entry[3] else _NO_METADATA
        _put_commit(
            out, time_delta, offset_delta, key, entry[0], entry[1], entry[2], metadata, timestamp, tags
        )
        offset_delta += 1


@cython.cfunc
def _put_commit(
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
) -> cython.int:
    start: cython.Py_ssize_t = len(out)
    key_size: cython.Py_ssize_t = len(key) + _KEY_REST
    value_size: cython.Py_ssize_t = _VALUE_HEAD + len(metadata) + _TIME + len(tags)
    # Between them: attributes in front, the number of headers behind.
    size: cython.Py_ssize_t = 2 + varint_size(time_delta) + varint_size(offset_delta)
    size += varint_size(key_size) + key_size + varint_size(value_size) + value_size
    room: cython.Py_ssize_t = varint_size(size) + size
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
    return 0
