"""The contract of the windowed check."""

from array import array

from typing_extensions import Buffer

STATE: int
SEEN: int
LEAST_DELTA: int
MOST_DELTA: int
NULL_KEYS: int

def check_window(
    buf: Buffer, start: int, end: int, count: int, base_timestamp: int, state: array[int]
) -> tuple[int, int]:
    """Check the v2 records of a producer's batch that lie in [start, end): (status, position after the last).

    With OK the record at that position, if any, ends past `end`: it begins the next window. `state` is carried from
    window to window: how many records were seen, the least and the largest timestamp delta, how many have no key.
    More than `count`: BAD_COUNT; offset deltas other than 0, 1, 2, ...: BAD_OFFSETS; anything else: BAD_RECORD.
    """
