"""Small batches that came one after another for one partition, to be appended as one."""

from __future__ import annotations

from array import array
from typing import Final

from ottla.names import Bytes
from ottla.records import coalesce_kernel, kernel

MAX_BATCHES: Final = 64
MAX_BYTES: Final = 64 << 10  # of all of them: larger batches gain nothing, and are copied once more


class BatchRun:
    """Memory for one run after another: what was received, where its batches lie, and, once they are coalesced, what is
    to be written."""

    __slots__ = ("count", "data", "places", "received", "rows")

    def __init__(self) -> None:
        self.received: Bytes = b""
        self.places = array("q", bytes(8 * coalesce_kernel.PLACE * MAX_BATCHES))
        self.rows = array("q", bytes(8 * kernel.ROW * MAX_BATCHES))
        self.data = bytearray(MAX_BYTES)
        self.count = 0  # of batches that were received, and then of those that were appended
