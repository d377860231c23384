"""Types and contracts of the loops that hold scanned batches against their neighbours and their index files.

`rows` and `count` are what kernel.scan() gave. Findings go to `found`, FOUND numbers each (kind, then three that depend
on it), as many as fit; the number of all of them is returned, so that a caller can say how many more there are.
"""

from array import array

from typing_extensions import Buffer

# check_rows() keeps CHECK_STATE numbers between calls; these are the ones that callers set or read.
CHECK_STATE: int  # 20
EXPECTED_OFFSET: int  # set: where the first batch should begin. Then: one past the last offset seen
PREVIOUS_BASE: int  # set -1
PREVIOUS_EXPECTED: int  # set -1
GAPS: int  # how often a batch begins later than the one before it ends
FIRST_GAP_POSITION: int  # of the batch behind the first gap
FIRST_GAP_OFFSET: int  # first offset that is missing
FIRST_GAP_SIZE: int  # offsets that are missing there
THIN_BATCHES: int  # batches that lost records to compaction
RECORDS: int  # records in all batches that say how many they have
EPOCH: int  # set -1: leader epoch of the last batch
EPOCH_ENTRY: int  # set -1: the checkpoint entry that the last batch belongs to
EPOCH_WRONG: int  # whether the last batch contradicts the checkpoint
BATCHES: int  # batches seen
LARGEST_TIMESTAMP: int  # set -1: of all batches
RESUME_OFFSET: int  # set -1

FOUND: int  # 4

# What check_rows() finds, and the three numbers that follow.
OVERLAP: (
    int  # row, offset expected, -1; or if the batch before is the wrong one: the offset that it should have
)
EPOCH_DIFFERS: (
    int  # row, epoch by the checkpoint (-1: none), 1 if it is the first batch of its checkpoint entry, else 0
)
EPOCH_AGREES: int  # after such: row, epoch, 1 if it is the first batch of its checkpoint entry, else 0
RESUMES: int  # after an OVERLAP: row, the base offset that the batch before should have, 0
EPOCH_FALLS: int  # without a checkpoint: row, the larger epoch before it, 0

def check_rows(rows: array[int], count: int, state: array[int], epochs: array[int], found: array[int]) -> int:
    """Offsets must grow, and epochs be the checkpoint's.

    `epochs` has the checkpoint's entries (epoch, start offset, ...); if it is empty, epochs must only not fall.
    """

def codec_rows(rows: array[int], count: int, keep: array[int]) -> int:
    """Which rows are compressed: their row numbers go to `keep`, their number is returned."""

# What the entry checks find.
NOT_ASCENDING: int  # slot, offset, position (time index: row)
NO_BATCH: (
    int  # slot, offset, position (time index: row): no batch begins there (time index: none has that offset)
)
WRONG_OFFSET: int  # slot, row, last offset of the batch at that position, which is larger than the entry's
WRONG_TIMESTAMP: int  # slot, offset, row: the batch with that offset has another largest timestamp
NOT_LARGEST: int  # slot, offset, row: an earlier batch has a timestamp as large
INSIDE_BATCH: int  # slot, offset, row: not the batch's last offset
PAST_BATCH: int  # slot, row, last offset of the batch at that position, which is smaller than the entry's

def check_offset_entries(
    rows: array[int], count: int, entries: Buffer, slot: int, total: int, base_offset: int, found: array[int]
) -> tuple[int, int]:
    """Hold the offset index's entries from `slot` on that point at these rows against them: (next slot, findings)."""

def check_time_entries(
    rows: array[int],
    count: int,
    entries: Buffer,
    slot: int,
    total: int,
    base_offset: int,
    largest: int,
    found: array[int],
) -> tuple[int, int, int]:
    """The same for the time index: (next slot, findings, largest timestamp so far); `largest` came before."""

def find_header(buf: Buffer, start: int, end: int, min_offset: int, max_offset: int, max_size: int) -> int:
    """The next position where a batch may begin: known magic, sane length, offset in [min_offset, max_offset).

    When none is found, the first position whose header would reach past `end`.
    """
