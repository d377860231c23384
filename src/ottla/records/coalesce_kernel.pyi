"""Types and contract of the loop that gathers batches; coalesce_kernel.py says what it is for."""

from array import array

from typing_extensions import Buffer

# A place: where a request's one batch lies in what was received, and where its request ends.
PLACE: int
CORRELATION_ID: int
RECORDS: int
SIZE: int
STOP: int

def coalesce(
    buf: Buffer,
    places: array[int],
    count: int,
    next_offset: int,
    leader_epoch: int,
    max_size: int,
    keys_needed: bool,
    out: bytearray,
    rows: array[int],
) -> tuple[int, int, int, int, int, int]:
    """Check the batches at the first `count` places and copy them to `out`, one behind another, with their offsets
    from `next_offset` on and the leader epoch.

    Returns how many there were until something was special about one, the bytes of them all, their last offset, the
    smallest and the largest timestamp of their records, and the last offset of the batch that has the largest. Their
    rows are as scan() writes them, positions counted in `out`. `buf` stays as it is.

    Special are: errors of any kind, any attribute (codec, transaction, ...), more bytes than `max_size` or than `out`
    has left, a record without a key where keys are needed, a largest timestamp that the header has wrong, another
    producer than that of the batch before, or a sequence that does not follow.
    """
