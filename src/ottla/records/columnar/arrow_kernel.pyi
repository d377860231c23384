"""Types and contract of the loop that turns records into Arrow columns."""

from array import array

from typing_extensions import Buffer

# Columns that can be asked for, as a mask.
KEY: int  # 1
VALUE: int  # 2
OFFSET: int  # 4
TIMESTAMP: int  # 8, in microseconds; what leaves 64 bits stays at their end
TIMESTAMP_TYPE: int  # 16: 0 the producer's, 1 the log's, -1 none (magic 0)
HEADERS: int  # 32

# How far fill() came.
DONE: int  # 0: through all rows
FULL: int  # 1: no room for the next record; renew(), then call again with the row given back
PACKED: (
    int  # 2: that row is compressed: for fill_records(). There: the record at that position is not all there
)
BAD: int  # 3: that row's records are not what its header promises
PAST: int  # 4: that row and all that follow lie at or past `to_offset`

class Columns:
    """Fills the columns in `mask` with records of [from_offset, to_offset); control batches are left out."""

    def __init__(self, mask: int, from_offset: int, to_offset: int) -> None: ...
    def renew(self, room: int, header_room: int, views: tuple[memoryview | None, ...]) -> None:
        """Go on in new buffers for `room` rows with `header_room` headers in all.

        The views, in this order, with zeroed bits and a zero before the first end; None for a column not asked for:
        offsets int64, timestamps int64, timestamp types int32; keys: ends int32, bits, data; values: ends, bits,
        data; header lists: ends, bits; header names: ends, data; header values: ends, bits, data.
        """

    def state(
        self,
    ) -> tuple[int, tuple[int, int], tuple[int, int], tuple[int, int], int, tuple[int, int], bool]:
        """(rows, (key bytes, null keys), (value bytes, null values), (headers, rows without any), name bytes,
        (header value bytes, null header values), all names are ASCII) since renew()."""

    def needs(self) -> tuple[int, int, int, int]:
        """(key bytes, value bytes, headers, header bytes) of the record that did not fit."""

    def fill(
        self, buf: Buffer, rows: array[int], first: int, count: int, shift: int, aborted: array[int]
    ) -> tuple[int, int]:
        """Take the records of rows [first, count) of kernel.scan(): (row that was come to, status).

        `shift` is what scan() added to positions. `aborted` has (producer id, first offset, last offset) of aborted
        transactions, sorted. CRCs are the caller's, who asked scan() for them.
        """

    def fill_messages(
        self,
        buf: Buffer,
        rows: array[int],
        first: int,
        count: int,
        magic: int,
        offset_shift: int,
        has_stamp: bool,
        stamp: int,
    ) -> tuple[int, int]:
        """Take rows [first, count) of the messages of magic 0 or 1 that a wrapper held: (row come to, DONE / FULL /
        BAD). Their offsets lie `offset_shift` further on; a wrapper with log-append time gives all of them its own."""

    def fill_records(
        self, buf: Buffer, start: int, end: int, rows: array[int], index: int
    ) -> tuple[int, int, int]:
        """Take decompressed v2 records in [start, end) of the batch in row `index`: (records passed, position after
        them, DONE / FULL / PACKED / BAD). Whether they are as many as announced is the caller's to see."""
