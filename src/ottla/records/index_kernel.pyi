"""Types and contracts of the loops over index entries and scanned rows. Import them from kernel."""

from array import array

from typing_extensions import Buffer

def index_floor(buf: Buffer, entries: int, entry_size: int, target: int) -> int:
    """The last slot whose key is <= target, or -1. Key: int32 at the entry's start (entry_size 8) or int64 (12).

    Tries the last page's worth of entries first, because most lookups are near the end and those pages are warm.
    """

def index_rows(
    rows: array[int],
    count: int,
    base_offset: int,
    interval: int,
    state: array[int],
    offset_entries: bytearray,
    time_entries: bytearray,
) -> int:
    """Append the sparse index entries that these scanned rows call for; rows must be in order. Returns OK, or BAD_OFFSETS at an offset outside [base, base + 2^31-1].

    state (8 int64, kept between calls): 0 bytes since the last entry, 1 largest timestamp so far, 2 its offset (last offset of that batch),
    3 last offset in the offset index (or -1), 4 last timestamp in the time index (or -1), 5 last offset in the time index (or -1), 6 rows used, 7 unused.
    As Kafka: for each batch, first raise the largest timestamp; then if bytes since the last entry > interval, add (last offset - base, position)
    to the offset entries and, if the largest timestamp grew past the last time entry's, (largest timestamp, its offset - base) to the time entries, and
    reset the byte count; then add the batch's size to the byte count.
    """

def producer_rows(rows: array[int], count: int, keep: array[int]) -> int:
    """Which rows matter to producer state: their row numbers go to `keep` (ascending, room for `count`), their number is returned.

    Every transactional or control batch does; of plain idempotent batches only the last five of each (producer id, epoch) do; batches without a producer id never.
    A control or transactional batch of the same producer ends a run.
    """

def rows_in_order(rows: array[int], count: int, expected: int) -> int:
    """How many rows, from the first on, have offsets that begin at `expected` or later and only grow."""

def epoch_rows(rows: array[int], count: int, latest: int, keep: array[int]) -> int:
    """Where the leader epoch changes: row numbers go to `keep`, their number is returned. `latest` came before."""
