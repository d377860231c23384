"""Checks the records inside a compressed batch without ever holding all of them."""

from __future__ import annotations

from array import array

from ottla.errors import DecompressionLimitError
from ottla.records import kernel, window_kernel
from ottla.records.compression import streams as compression
from ottla.records.compression.codec import Codec

_WINDOW_BYTES = 1 << 20
_INT64_MAX = 2**63 - 1


def check_packed(
    codec: Codec, packed: memoryview, count: int, base_timestamp: int, max_output_bytes: int
) -> tuple[int, int, int, int, int]:
    """(status, number of the bad record, smallest timestamp, largest timestamp, records without a key).

    What kernel.check_records says of them, in memory for a window and one record. At the first thing that is wrong
    unpacking stops, and also where it grows past `max_output_bytes`.
    """
    state = array("q", [0, _INT64_MAX, -_INT64_MAX - 1, 0])
    rest = bytearray()
    unpacked_bytes = 0
    for window in compression.windows(codec, packed, _WINDOW_BYTES):
        unpacked_bytes += len(window)
        if unpacked_bytes > max_output_bytes:
            raise DecompressionLimitError(f"{Codec(codec).name} data grows past {max_output_bytes} bytes")
        rest += window
        status, position = window_kernel.check_window(rest, 0, len(rest), count, base_timestamp, state)
        if status != kernel.OK:
            return status, -1 if status == kernel.BAD_COUNT else state[window_kernel.SEEN], -1, -1, 0
        del rest[:position]
    seen = state[window_kernel.SEEN]
    if rest:
        return kernel.BAD_RECORD, seen, -1, -1, 0
    if seen != count:
        return kernel.BAD_COUNT, -1, -1, -1, 0
    least, most = state[window_kernel.LEAST_DELTA], state[window_kernel.MOST_DELTA]
    return kernel.OK, -1, base_timestamp + least, base_timestamp + most, state[window_kernel.NULL_KEYS]
