"""Type and contract of the reader of runs; produce_kernel.py says what it is for."""

import uuid
from array import array

from ottla.names import Bytes

COMPILED: bool

def read_run(
    received: Bytes, start: int, end: int, max_size: int, places: array[int]
) -> tuple[int, int, int, str | None, uuid.UUID | None, int] | None:
    """The Produce requests at `start`, which is where a frame begins with its length: as many as have come whole, are
    the same but for correlation id and records, and have a place left. None if the first is not such a request.

    Read are requests of v9 and later, not larger than `max_size`, without transactional id and tags, for one partition,
    with one batch that is neither compressed nor transactional, as far as its header says. Returns their number,
    version, acks, name or id of the topic, and partition. A place has four numbers: correlation id, where the records
    begin, their size, and where the frame ends.
    """
