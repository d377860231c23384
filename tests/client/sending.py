"""Batches for producers, as kernels make them."""

from __future__ import annotations

from ottla.records import kernel
from ottla.records.batch import HEADER_SIZE


def batch_of(*values: bytes) -> tuple[bytearray, int]:
    """Records with room for a header before them, and how many they are."""
    batch = bytearray(HEADER_SIZE)
    kernel.encode_records(batch, [(0, None, value, ()) for value in values], 0, None)
    return batch, len(values)
