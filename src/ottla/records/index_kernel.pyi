"""Types and contracts of the loops over index entries and scanned rows. Import them from kernel."""

from array import array

from typing_extensions import Buffer

def index_floor(buf: Buffer, entries: int, entry_size: int, target: int) -> int:
    """The last slot whose key is <= target, or -1.

    Key: int32 at the entry's start (entry_size 8) or int64 (12). Looks at the last page's first entry before
    all others, because most lookups are near the end and that page is warm.
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
    """Append the sparse index entries that these scanned rows call for; rows must be in order.

    Returns OK, or BAD_OFFSETS at an offset outside [base, base + 2^31-1], at one that does not grow from
    entry to entry, or at a position past 2^31-1; state[6] is then the number of that row.

    state (8 int64, kept between calls): 0 bytes since the last entry, 1 largest timestamp so far (or -1), 2
    its offset (last offset of that batch), 3 last offset in the offset index (or -1), 4 last timestamp in
    the time index (or -1), 5 last offset in the time index (or -1), 6 rows used by this call, 7 unused.

    As Kafka: for each batch, first raise the largest timestamp; then if bytes since the last entry >
    interval, add (last offset - base, position) to the offset entries and, if the largest timestamp grew
    past the last time entry's, (largest timestamp, its offset - base) to the time entries, and reset the
    byte count; then add the batch's size to the byte count.
    """

def producer_rows(rows: array[int], count: int, keep: array[int]) -> int:
    """Which rows matter to producer state.

    Their row numbers go to `keep` (ascending, room for `count`), their number is returned. Every
    transactional or control batch matters; of plain idempotent batches only the last five of each (producer
    id, epoch); batches without a producer id never. A control or transactional batch of the same producer
    ends a run.
    """

def rows_in_order(rows: array[int], count: int, expected: int) -> int:
    """How many rows, from the first on, have offsets that begin at `expected` or later and only grow."""

def epoch_rows(rows: array[int], count: int, latest: int, keep: array[int]) -> int:
    """Where the leader epoch changes, `latest` before: row numbers go to `keep`; returns how many."""

def transaction_rows(
    buf: Buffer,
    rows: array[int],
    first: int,
    count: int,
    shift: int,
    from_offset: int,
    to_offset: int,
    began: dict[int, int],
    aborted: list[tuple[int, int, int]],
) -> int:
    """Follow transactions through the rows [first, count) of batches that hold offsets of [from_offset, to_offset).

    `shift` is what scan() added to positions. `began` has the open ones: producer id, base offset of the first batch.
    A marker ends its producer's; when that aborts it, (producer id, that offset, the marker's) is added to `aborted`.

    Returns `count`, or the row of a control batch that is not a marker in its usual form: that one is the caller's.
    """
