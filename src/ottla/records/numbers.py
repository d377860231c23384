"""Numbers and bytes as they lie in batches and records, for kernels that run interpreted. In C: numbers.pxd."""

from __future__ import annotations

import sys
from struct import Struct

from ottla.names import Bytes

LLONG_MAX = 2**63 - 1
LLONG_MIN = -(2**63)
FAR = sys.maxsize  # the position after a read that failed: past every end
_INT16, _UINT32, _INT32, _INT64 = (Struct(f">{kind}") for kind in "hIiq")

Out = bytearray | memoryview


def read_int16(view: Bytes, at: int) -> int:
    return int(_INT16.unpack_from(view, at)[0])


def read_uint32(view: Bytes, at: int) -> int:
    return int(_UINT32.unpack_from(view, at)[0])


def read_int32(view: Bytes, at: int) -> int:
    return int(_INT32.unpack_from(view, at)[0])


def read_int64(view: Bytes, at: int) -> int:
    return int(_INT64.unpack_from(view, at)[0])


def read_word(view: Bytes, at: int) -> int:
    """Eight bytes, the lowest first."""
    return int.from_bytes(view[at : at + 8], "little")


def put_number(out: Out, at: int, value: int, size: int) -> int:
    """A big-endian number of `size` bytes; the position after it."""
    out[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "big")
    return at + size


def copy_bytes(view: Bytes, start: int, size: int, out: Out, to: int) -> int:
    """`size` bytes from `start` on, none if that is negative; the position after them in `out`."""
    if size <= 0:
        return to
    out[to : to + size] = view[start : start + size]
    return to + size


def overflows(base: int, delta: int) -> bool:
    """Whether the sum is none of 64 bits."""
    return not LLONG_MIN <= base + delta <= LLONG_MAX


def zigzag(value: int) -> int:
    """Numbers around 0 as small ones from 0 on."""
    return value << 1 if value >= 0 else (-1 - value << 1) + 1


def unzigzag(bits: int) -> int:
    return bits >> 1 ^ -(bits & 1)


def varint_size(value: int) -> int:
    """The bytes of a number as a zigzag varint."""
    return max(1, -(-zigzag(value).bit_length() // 7))


def put_varint(out: Out, at: int, value: int) -> int:
    """A zigzag varint; the position after it."""
    bits = zigzag(value)
    while bits >= 0x80:
        out[at] = bits & 0x7F | 0x80
        bits >>= 7
        at += 1
    out[at] = bits
    return at + 1


def read_varint(view: Bytes, at: int, end: int, width: int) -> tuple[int, int]:
    """A zigzag varint of a number of `width` bits, 32 or 64: (value, position after it)."""
    bits = shift = 0
    while at < end and shift < width:
        byte = view[at]
        at += 1
        if shift + 7 > width and byte >> (width - shift):
            break
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            return unzigzag(bits), at
        shift += 7
    return 0, FAR


read_long_varint = read_varint


def read_short(view: Bytes, at: int) -> tuple[bool, int, int]:
    """A varint of one or two bytes: (is it one, its bits, position after it)."""
    if view[at] < 0x80:
        return True, view[at], at + 1
    if view[at + 1] < 0x80:
        return True, view[at] + (view[at + 1] << 7) - 0x80, at + 2
    return False, 0, at
