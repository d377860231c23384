"""XXH3, the hash of 64 bits: what Kafka sums up the topics of a group with, so that it sees when one has changed.

Without a seed. It is asked for a topic that is new or has changed, never for records.
"""

from __future__ import annotations

from struct import Struct

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8"
    "fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb17"
    "0ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK = (1 << 64) - 1
_MASK_32 = (1 << 32) - 1
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_START = (_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0])

_STRIPE_BYTES = 64
_STRIPES = (len(_SECRET) - _STRIPE_BYTES) // 8  # of a block
_MIDDLE_MAX = 240
_LANES = Struct("<8Q")
_U32, _U64 = Struct("<I"), Struct("<Q")


def xxh3_64(data: bytes) -> int:
    """The hash, as a number without sign."""
    size = len(data)
    if size <= 16:
        return _short(data)
    if size <= 128:
        return _medium(data)
    if size <= _MIDDLE_MAX:
        return _middle(data)
    return _long(data)


def _u32(data: bytes, at: int) -> int:
    value: int = _U32.unpack_from(data, at)[0]
    return value


def _u64(data: bytes, at: int) -> int:
    value: int = _U64.unpack_from(data, at)[0]
    return value


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product ^ product >> 64) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MX1 & _MASK
    return value ^ value >> 32


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = value * _P64[1] & _MASK
    value ^= value >> 29
    value = value * _P64[2] & _MASK
    return value ^ value >> 32


def _swapped(value: int) -> int:
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _short(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = _u64(_SECRET, 24) ^ _u64(_SECRET, 32) ^ _u64(data, 0)
        high = _u64(_SECRET, 40) ^ _u64(_SECRET, 48) ^ _u64(data, size - 8)
        return _avalanche((size + _swapped(low) + high + _fold(low, high)) & _MASK)
    if size >= 4:
        both = _u32(data, size - 4) + (_u32(data, 0) << 32)
        value = both ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _MX2 & _MASK
        value ^= (value >> 35) + size & _MASK
        value = value * _MX2 & _MASK
        return value ^ value >> 28
    if size:
        both = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_64(both ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mixed(data: bytes, at: int, secret: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret), _u64(data, at + 8) ^ _u64(_SECRET, secret + 8))


def _medium(data: bytes) -> int:
    """From both ends towards the middle."""
    size = len(data)
    total = size * _P64[0]
    for step in range((size - 1) // 32 + 1):
        total += _mixed(data, 16 * step, 32 * step) + _mixed(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _middle(data: bytes) -> int:
    size = len(data)
    total = size * _P64[0]
    for step in range(8):
        total += _mixed(data, 16 * step, 16 * step)
    total = _avalanche(total & _MASK)
    for step in range(8, size // 16):
        total += _mixed(data, 16 * step, 16 * (step - 8) + 3)
    return _avalanche(total + _mixed(data, size - 16, 136 - 17) & _MASK)


def _long(data: bytes) -> int:
    lanes = list(_START)
    size = len(data)
    stripes = (size - 1) // _STRIPE_BYTES
    for stripe in range(stripes):
        place = stripe % _STRIPES
        _accumulate(lanes, data, stripe * _STRIPE_BYTES, 8 * place)
        if place == _STRIPES - 1:
            _scramble(lanes)
    _accumulate(lanes, data, size - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    total = size * _P64[0]
    for pair in range(4):
        secret = 11 + 16 * pair
        total += _fold(
            lanes[2 * pair] ^ _u64(_SECRET, secret), lanes[2 * pair + 1] ^ _u64(_SECRET, secret + 8)
        )
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    values, keys = _LANES.unpack_from(data, at), _LANES.unpack_from(_SECRET, secret)
    for lane in range(8):
        keyed = values[lane] ^ keys[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + values[lane] & _MASK
        lanes[lane] = lanes[lane] + (keyed & _MASK_32) * (keyed >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    keys = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for lane in range(8):
        value = lanes[lane]
        lanes[lane] = (value ^ value >> 47 ^ keys[lane]) * _P32[0] & _MASK
