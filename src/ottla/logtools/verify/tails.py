"""Tells a tail that a stopped writer left from one that is damaged."""

from __future__ import annotations

from ottla.records import batch, kernel
from ottla.storage.fs import File
from ottla.storage.scan import LARGE_BATCH_BYTES

_CHUNK_BYTES = 1 << 20


def is_all_zero(file: File, start: int, end: int) -> bool:
    while start < end:
        data = file.pread(min(_CHUNK_BYTES, end - start), start)
        if not data:
            return True
        if data.strip(b"\0"):
            return False
        start += len(data)
    return True


def is_whole_but_for_its_length(file: File, start: int, end: int) -> bool:
    """Whether the CRC matches if the batch ends with the file: then its length is wrong, and nothing is torn."""
    if not batch.HEADER_SIZE <= end - start <= LARGE_BATCH_BYTES:
        return False
    data = memoryview(file.pread(end - start, start))
    stored = int.from_bytes(data[batch.CRC_AT : batch.ATTRIBUTES_AT], "big")
    return data[batch.MAGIC_AT] == batch.MAGIC_V2 and kernel.checksum(data[batch.ATTRIBUTES_AT :]) == stored
