"""The numbers inside of records, for kernels that run interpreted; compiled ones have varint_kernel.pxd."""

from __future__ import annotations


def overflows(base: int, delta: int) -> bool:
    """Whether the sum is none of 64 bits."""
    return not -1 << 63 <= base + delta < 1 << 63


def zigzag(value: int) -> int:
    """Numbers around 0 as small ones from 0 on."""
    return value << 1 if value >= 0 else (-1 - value << 1) + 1


def varint_size(value: int) -> int:
    """The bytes of a number as a zigzag varint."""
    return max(1, -(-zigzag(value).bit_length() // 7))
