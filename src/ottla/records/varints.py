"""The numbers inside of records, for kernels that run interpreted; compiled ones have varint_kernel.pxd."""

from __future__ import annotations


def zigzag(value: int) -> int:
    """Numbers around 0 as small ones from 0 on."""
    return value << 1 if value >= 0 else (-1 - value << 1) + 1


def varint_size(value: int) -> int:
    """The bytes of a number as a zigzag varint."""
    return max(1, -(-zigzag(value).bit_length() // 7))
