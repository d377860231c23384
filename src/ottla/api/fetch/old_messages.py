"""Records for clients that know only messages of magic 0 and 1 (Fetch v0 to v3), made on a thread of their own.

Each record is taken apart and written anew, by the interpreter: a request asks for that with sixty bytes. So an answer
has no more of them than are made in a fraction of a second. The client asks again from where it ended, as it does after
any answer; a batch with more records than that is given in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from ottla.errors import BrokerError
from ottla.records import batch
from ottla.records.legacy import conversion as legacy

MAX_BYTES = 256 << 10  # of the batches that an answer is made from, unless the first is larger
MAX_RECORDS = 10_000

_LENGTH = Struct(">i")


class Fetched(NamedTuple):
    """What was read of one partition."""

    records: Sequence[memoryview] | bytes
    first_offset: int  # that the client wants
    max_unpacked_bytes: int


Converted = bytes | BrokerError


def convert(parts: Sequence[Fetched], magic: int) -> list[Converted]:
    """The message sets of all partitions, in order; those that nothing was left for are empty."""
    found: list[Converted] = []
    left_bytes, left_records = MAX_BYTES, MAX_RECORDS
    for part in parts:
        if left_bytes <= 0 or left_records <= 0:
            found.append(b"")
            continue
        data = _head(part.records, left_bytes)
        whole = legacy.whole_batches_size(data)
        if not whole:
            # It does not fit. The first one shows the client that it must ask for more.
            found.append(data if left_bytes == MAX_BYTES else b"")
            left_bytes = 0
            continue
        left_bytes -= whole
        try:
            made, count = legacy.from_v2_within(
                memoryview(data)[:whole],
                magic,
                max_output_bytes=part.max_unpacked_bytes,
                first_offset=part.first_offset,
                max_records=left_records,
            )
        except BrokerError as error:
            found.append(error)
        else:
            found.append(made)
            left_records -= count
    return found


def _head(records: Sequence[memoryview] | bytes, limit: int) -> bytes:
    """The first `limit` bytes, or the first batch if that is larger."""
    views = [memoryview(records)] if isinstance(records, bytes) else records
    head = _first(views, limit)
    if limit == MAX_BYTES and len(head) >= batch.OVERHEAD_SIZE:
        size = _LENGTH.unpack_from(head, batch.OVERHEAD_SIZE - _LENGTH.size)[0] + batch.OVERHEAD_SIZE
        if size > limit:
            return _first(views, size)
    return head


def _first(views: Sequence[memoryview], size: int) -> bytes:
    parts = []
    for view in views:
        parts.append(view[:size])
        size -= len(parts[-1])
        if not size:
            break
    return b"".join(parts)
