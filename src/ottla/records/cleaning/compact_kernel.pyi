"""Types and contracts of the loops that write cleaned batches; compact_kernel.py says how they work.

`rows` are those of kernel.scan(), `shift` is where `data` begins in the file that their positions mean, and
`actions` has one byte for each row. Batches are plain when they are of magic 2 and not compressed; the others are
`PACKED`: their caller opens them into a plain one.
"""

from array import array

from typing_extensions import Buffer

from ottla.records.cleaning.offset_map_kernel import OffsetMap

# What to do with a batch. OffsetMap.put_rows() knows only FILTER and DROP (do not enter its keys).
FILTER: int  # 0: keep the records that stay; without any, drop the batch
FILTER_OR_EMPTY: int  # 1: the same, but keep at least an empty batch
EMPTY: int  # 2: drop all records, keep an empty batch
DROP: int  # 3
MARK: int  # 4: keep all records (of a control batch) and give it a delete horizon if it has none
COPY: int  # 5: byte for byte

# Why a loop ended, and at which row.
DONE: int  # 0: all rows are through
PACKED: int  # 1: this row is not a plain batch
FULL: int  # 2: the map is; of this row some keys may be entered
NO_ROOM: int  # 3: `out` is too short for this row, which may need its size and GROWTH_BYTES a record
BAD: int  # 4: a record of this row is malformed

GROWTH_BYTES: int  # 10

def special_rows(rows: array[int], count: int, offsets: array[int], keep: array[int]) -> int:
    """Write into `keep` the numbers of rows that need a decision; how many there are.

    They are transactional or control batches, and those whose last offset is in `offsets` (ascending).
    """

def filter_rows(
    offset_map: OffsetMap,
    data: Buffer,
    shift: int,
    rows: array[int],
    start: int,
    count: int,
    actions: Buffer,
    latest: int,
    now_ms: int,
    horizon_ms: int,
    out: Buffer,
    to: int,
) -> tuple[int, int, int]:
    """Write what stays of each batch into `out` from `to` on: (row reached, position after the last, why).

    A record stays if its offset is above `latest`, or it is the last of its key and not a tombstone whose batch
    has a delete horizon at or before `now_ms`. A batch that keeps tombstones gets `horizon_ms` for its horizon
    unless it has one. A batch that keeps all its records is copied as it is, any other keeps its offsets.
    """
