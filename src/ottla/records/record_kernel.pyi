"""Types and contracts of the loops over records. Import them from kernel, whose rules hold here too."""

from array import array
from collections.abc import Sequence

from typing_extensions import Buffer

def check_records(
    buf: Buffer, start: int, end: int, count: int, base_timestamp: int, dense: bool
) -> tuple[int, int, int, int, int, int]:
    """Check `count` v2 records that fill [start, end) exactly.

    (status, bad_index, min_ts, max_ts, max_ts_index, null_keys): all but the first -1, -1, -1, -1, 0 when
    there are no records or the status is not OK; bad_index is then the number of the first bad record.
    dense: offset deltas must be 0, 1, 2, ... (a producer's batch); else they must only grow (a compacted
    one): BAD_OFFSETS. More or fewer records than `count`: BAD_COUNT, bad_index -1. Anything else, also a
    timestamp out of 64 bits: BAD_RECORD.
    """

def decode(
    buf: Buffer, start: int, end: int, base_offset: int, base_timestamp: int, rows: array[int]
) -> tuple[int, int, int]:
    """Locate records: (rows written, position after the last, status OK / TRUNCATED / BAD_RECORD).

    Stops when rows is full. TRUNCATED: the record at that position ends past `end`. Timestamps are base +
    delta; what log-append time makes of them is for the caller.
    """

def headers(buf: Buffer, position: int, end: int, count: int) -> list[tuple[bytes, bytes | None]]:
    """The headers of one record located by decode(); ValueError if it was not."""

def encode_records(
    out: bytearray,
    records: Sequence[tuple[int, Buffer | None, Buffer | None, Sequence[tuple[Buffer, Buffer | None]]]],
    base_timestamp: int,
    offset_deltas: Sequence[int] | None,
) -> None:
    """Append v2 records of (timestamp, key, value, headers) to `out`; None for deltas means 0, 1, 2, ...

    Timestamps must differ from `base_timestamp` by less than 2^63.
    """
