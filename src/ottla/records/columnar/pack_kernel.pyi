"""Types and contracts of the loops that make records out of Arrow columns."""

from array import array

from typing_extensions import Buffer

# Validity bits or None, int32 offsets, bytes: row i is bytes[offsets[i]:offsets[i + 1]]. The arrays are not shorter
# than the rows that are asked for, and offsets lie within the bytes: Arrow has checked that.
Column = tuple[Buffer | None, Buffer, Buffer]
# Validity bits or None, int32 offsets into the two columns, names, contents.
Headers = tuple[Buffer | None, Buffer, Column, Column]

def murmur2(data: Buffer) -> int:
    """Kafka's hash of a key, as an unsigned number."""

def partition_rows(
    keys: Column,
    value_offsets: Buffer,
    partitions: int,
    sticky: int,
    sticky_bytes: int,
    out: array[int],
) -> int:
    """Give every row of `out` (int32) that is negative its partition: by its key as Kafka's clients do.

    Rows without a key go to the partition `sticky`, and after so many bytes of values to the next. Returns where the
    next such row would go.
    """

def group_rows(numbers: Buffer, order: array[int], ends: array[int]) -> None:
    """Sort rows by a number of 0 to len(ends) - 1, keeping their order: `order` has the rows, `ends` where each
    number's rows end in it. A number out of range is a ValueError.
    """

class Packer:
    """Rows of one Arrow batch, ready to be written as records."""

    def __init__(
        self, keys: Column, values: Column, headers: Headers | None, times: Buffer | None = None
    ) -> None:
        """`times` are the timestamps of the rows, int64; without them all have that of their batch."""

    def pack(
        self,
        out: bytearray,
        records: int,
        order: Buffer,
        begin: int,
        end: int,
        limit_bytes: int,
        base_time: int = 0,
    ) -> int:
        """Append the rows order[begin:end] as records to a v2 batch that has `records` already.

        Stops before `out` would grow past the limit, unless it has no record yet. Returns where in `order` it stopped.
        Timestamps are written relative to `base_time`, which must be the batch's base timestamp.
        """

    def latest_time(self, order: Buffer, begin: int, end: int) -> int:
        """The largest timestamp of the rows order[begin:end]; only with `times`."""
