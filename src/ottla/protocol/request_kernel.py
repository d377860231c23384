# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reads what nearly all requests to a busy broker are: a header, and a Produce or OffsetCommit of today's versions.

request_kernel.pyi has the contracts. Whatever is out of the ordinary is left to the readers in frame.py and codec.py,
which also know how to complain. Interpreted, this file is slower than they are; then nobody uses it.
"""

from __future__ import annotations

import cython

from ottla.protocol.commit_topic import CommitTopic
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.wire import read_id

COMPILED = cython.compiled

_HEAD = cython.declare(cython.Py_ssize_t, 10)  # API, version, correlation id, length of the client id
_ID = cython.declare(cython.Py_ssize_t, 16)
_LONG = cython.declare(cython.Py_ssize_t, 128)  # from here on a length takes more than one byte
# Declared, because a large literal would be an object.
_MAX_INT32 = cython.declare(cython.longlong, 2147483647)
_UINT32 = cython.declare(cython.longlong, 4294967296)
_TOPIC_IDS_SINCE = cython.declare(cython.int, 13)
_COMMIT_TOPIC_IDS_SINCE = cython.declare(cython.int, 10)
_COMMIT = cython.declare(cython.Py_ssize_t, 16)  # partition, offset, leader epoch
# As what they are, they can be asked for a new instance without a call through the interpreter.
_Request = cython.declare(type, ProduceRequest)
_Topic = cython.declare(type, TopicProduceData)
_Partition = cython.declare(type, PartitionProduceData)
_Commit = cython.declare(type, OffsetCommitRequest)
_CommitTopic = cython.declare(type, CommitTopic)


@cython.cfunc
@cython.exceptval(check=False)
def read_int16(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.int:
    value: cython.int = buf[at] * 256 + buf[at + 1]
    return value - 65536 if value > 32767 else value


@cython.cfunc
@cython.exceptval(check=False)
def read_int32(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    value: cython.longlong = buf[at]
    value = value * 256 + buf[at + 1]
    value = value * 256 + buf[at + 2]
    value = value * 256 + buf[at + 3]
    return value - _UINT32 if value > _MAX_INT32 else value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int64(buf: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    low: cython.longlong = read_int32(buf, at + 4)
    return read_int32(buf, at) * _UINT32 + (low + _UINT32 if low < 0 else low)


@cython.cfunc
@cython.inline
def _text(frame, buf: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, stop: cython.Py_ssize_t):
    """The string there, not empty."""
    if cython.compiled:
        return cython.cast(cython.p_char, cython.address(buf[start]))[: stop - start].decode("utf-8")
    return str(frame[start:stop], "utf-8")


def read_header(frame, flexible_since):
    buf: cython.const[cython.uchar][::1] = frame
    size: cython.Py_ssize_t = len(buf)
    if size < _HEAD:
        return None
    api_key = read_int16(buf, 0)
    version = read_int16(buf, 2)
    length: cython.Py_ssize_t = read_int16(buf, 8)
    position: cython.Py_ssize_t = _HEAD
    client_id = None
    if length >= 0:
        position += length
        if position > size:
            return None
        try:
            client_id = _text(frame, buf, _HEAD, position) if length else ""
        except UnicodeDecodeError:
            return None
    if version >= flexible_since.get(api_key, 32767):
        if position >= size or buf[position]:
            return None
        position += 1
    return api_key, version, read_int32(buf, 4), client_id, position


@cython.cfunc
@cython.exceptval(check=False)
def read_stop(
    buf: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where a short string ends, or null does, if something follows it; else -1."""
    stop: cython.Py_ssize_t
    if position >= end or buf[position] >= _LONG:
        return -1
    stop = position + buf[position] if buf[position] else position + 1
    return stop if stop < end else -1


@cython.cfunc
def read_string(
    frame, buf: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, stop: cython.Py_ssize_t
):
    """A string that `read_stop` has found the end of."""
    if not buf[position]:
        return None
    return _text(frame, buf, position + 1, stop) if buf[position] > 1 else ""


@cython.cfunc
def _name_topic(
    frame,
    buf: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    by_id: cython.bint,
    topic,
) -> cython.Py_ssize_t:
    """Give a topic the name or the id at `position`; where that ends, if something follows it, or -1."""
    stop: cython.Py_ssize_t
    if by_id:
        stop = position + _ID
        if stop >= end:
            return -1
        topic.name = ""
        topic.topic_id = read_id(bytes(frame[position:stop]))
        return stop
    stop = read_stop(buf, position, end)
    if stop < 0 or not buf[position]:
        return -1
    topic.name = read_string(frame, buf, position, stop)
    topic.topic_id = None
    return stop


def read_produce(frame, position: cython.Py_ssize_t, version: cython.int):
    if type(frame) is not memoryview:
        return None
    try:
        return _read_produce(frame, frame, position, version)
    except UnicodeDecodeError:
        return None


@cython.cfunc
def _read_produce(
    frame, buf: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, version: cython.int
):
    end: cython.Py_ssize_t = len(buf)
    count: cython.Py_ssize_t
    # Without a transactional id: its length, acks, timeout, number of topics.
    if end - position < 8 or buf[position]:
        return None
    count = buf[position + 7]
    if not 0 < count < _LONG:
        return None
    request = _Request.__new__(_Request)
    request.transactional_id = None
    request.acks = read_int16(buf, position + 1)
    request.timeout_ms = read_int32(buf, position + 3)
    request.topic_data = topics = []
    position += 8
    for _ in range(count - 1):
        position = _read_topic(frame, buf, position, end, version, topics)
        if position < 0:
            return None
    if position >= end or buf[position]:  # tags
        return None
    return request


@cython.cfunc
def _read_topic(
    frame,
    buf: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    version: cython.int,
    topics,
) -> cython.Py_ssize_t:
    """Add the topic at `position`; where the next thing begins, or -1."""
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t
    topic = _Topic.__new__(_Topic)
    stop = _name_topic(frame, buf, position, end, version >= _TOPIC_IDS_SINCE, topic)
    if stop < 0:
        return -1
    topic.partition_data = partitions = []
    count = buf[stop]
    if not 0 < count < _LONG:
        return -1
    position = stop + 1
    for _ in range(count - 1):
        position = _read_partition(frame, buf, position, end, partitions)
        if position < 0:
            return -1
    if position >= end or buf[position]:  # tags
        return -1
    topics.append(topic)
    return position + 1


@cython.cfunc
def _read_partition(
    frame,
    buf: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    partitions,
) -> cython.Py_ssize_t:
    """Add the partition at `position`; where the next thing begins, or -1."""
    size: cython.longlong = 0
    shift: cython.int = 0
    byte: cython.int = _LONG
    if end - position < 6:
        return -1
    partition = _Partition.__new__(_Partition)
    partition.index = read_int32(buf, position)
    position += 4
    while byte >= _LONG:
        if position >= end or shift > 28:
            return -1
        byte = buf[position]
        position += 1
        size |= cython.cast(cython.longlong, byte & 127) << shift
        shift += 7
    size -= 1
    if size < 0 or size >= end - position:  # null, or without the tags behind it
        return -1
    partition.records = frame[position : position + size]
    position += size
    if buf[position]:  # tags
        return -1
    partitions.append(partition)
    return position + 1


# -- OffsetCommit


def read_offset_commit(frame, position: cython.Py_ssize_t, version: cython.int):
    try:
        return _read_commit(frame, frame, position, version)
    except UnicodeDecodeError:
        return None


@cython.cfunc
def _read_commit(
    frame, buf: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, version: cython.int
):
    end: cython.Py_ssize_t = len(buf)
    stop: cython.Py_ssize_t = read_stop(buf, position, end)
    if stop < 0 or not buf[position] or end - stop < 4:
        return None
    request = _Commit.__new__(_Commit)
    request.group_id = read_string(frame, buf, position, stop)
    request.generation_id_or_member_epoch = read_int32(buf, stop)
    request.retention_time_ms = -1
    position = stop + 4
    stop = read_stop(buf, position, end)
    if stop < 0 or not buf[position]:
        return None
    request.member_id = read_string(frame, buf, position, stop)
    position = stop
    stop = read_stop(buf, position, end)
    if stop < 0 or not 0 < buf[stop] < _LONG:
        return None
    request.group_instance_id = read_string(frame, buf, position, stop)
    request.topics = topics = []
    position = stop + 1
    for _ in range(buf[stop] - 1):
        position = _read_commit_topic(frame, buf, position, end, version, topics)
        if position < 0:
            return None
    if position >= end or buf[position]:  # tags
        return None
    return request


@cython.cfunc
def _read_commit_topic(
    frame,
    buf: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    version: cython.int,
    topics: list,
) -> cython.Py_ssize_t:
    """Add the topic at `position`; where the next thing begins, or -1."""
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    topic = _CommitTopic.__new__(_CommitTopic)
    stop = _name_topic(frame, buf, position, end, version >= _COMMIT_TOPIC_IDS_SINCE, topic)
    if stop < 0 or not 0 < buf[stop] < _LONG:
        return -1
    topic.entries = entries = []
    position = stop + 1
    for _ in range(buf[stop] - 1):
        if end - position < _COMMIT:
            return -1
        start = position + _COMMIT
        stop = read_stop(buf, start, end)
        if stop < 0 or not buf[start] or buf[stop]:  # no metadata, tags
            return -1
        metadata = read_string(frame, buf, start, stop)
        entries.append(
            (read_int32(buf, position), _int64(buf, position + 4), read_int32(buf, position + 12), metadata)
        )
        position = stop + 1
    if position >= end or buf[position]:  # tags
        return -1
    topics.append(topic)
    return position + 1
