"""Batches of every kind, and ways to damage them."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.control import Marker, build_marker
from tests.reference import fix_crc, legacy_message

_BYTES = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_NUMBERS = (
    0,
    1,
    -1,
    2,
    13,
    14,
    48,
    49,
    127,
    128,
    2**15 - 1,
    -(2**15),
    2**31 - 1,
    -(2**31),
    2**63 - 1,
    -(2**63),
)


def a_log(random: Random) -> bytearray:
    """One to four whole batches in offset order."""
    log = bytearray()
    offset = random.choice((0, 0, 7, 2**31, 2**62))
    for _ in range(random.randint(1, 4)):
        count = random.randint(1, 4)
        log += _a_batch(random, offset, count)
        offset += count + random.choice((0, 0, 5))
    return log


def _a_batch(random: Random, offset: int, count: int) -> bytes | bytearray:
    kind = random.randrange(10)
    if kind == 0:
        key, value = random.choice((None, b"", b"key")), random.choice((None, b"value"))
        magic, attributes = random.choice((0, 1)), random.choice((0, 0, 1, 9))
        return legacy_message(magic, offset, key, value, timestamp=1000, attributes=attributes)
    if kind == 1:
        return build_marker(Marker(random.random() < 0.5, 3), 5, 1, 1000, base_offset=offset)
    records = [_a_record(random, index) for index in range(count)]
    producer: dict[str, Any] = {
        "producer_id": random.choice((5, 6)),
        "producer_epoch": 1,
        "base_sequence": offset % 100,
    }
    return build_batch(
        records,
        base_offset=offset,
        codec=random.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD)),
        leader_epoch=random.choice((0, 1)),
        transactional=kind == 2,
        log_append_time=2000 if kind == 3 else None,
        offset_deltas=sorted(random.sample(range(count + 3), count)) if kind == 4 else None,
        **(producer if kind in (2, 5, 6) else {}),
    )


def _a_record(random: Random, index: int) -> NewRecord:
    return NewRecord(
        1000 + random.choice((0, index, -index, 2**40)),
        random.choice((None, b"", b"key", b"k" * 70)),
        random.choice((None, b"", b"value", b"v" * 200)),
        [(b"name", random.choice((None, b"", b"data")))] * random.choice((0, 0, 0, 1, 3)),
    )


def damage(random: Random, log: bytearray) -> bytearray:
    """Change a few places of `log`, then often mend length and CRC, so that the checks behind them run."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _one_change(random, log)
    if random.random() < 0.3 and len(log) >= 12:
        struct.pack_into(">i", log, 8, len(log) - 12)
    if random.random() < 0.7 and len(log) >= 21:
        size = max(21, min(len(log), int.from_bytes(log[8:12], "big") + 12))
        fix_crc(log, 0, size)
    return log


def _one_change(random: Random, log: bytearray) -> None:
    if not log:
        return
    # Half of the changes go where the numbers are: the header and the first record.
    at = random.randrange(min(len(log), 80) if random.random() < 0.5 else len(log))
    kind = random.randrange(7)
    if kind == 0:
        log[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        log[at] = random.choice(_BYTES)
    elif kind == 2:
        size = random.choice((1, 2, 4, 8))
        number = random.choice(_NUMBERS) & (1 << 8 * size) - 1
        log[at : at + size] = number.to_bytes(size, "big")
    elif kind == 3:
        del log[at : at + random.choice((1, 2, 8, 1000))]
    elif kind == 4:
        log[at:at] = bytes([random.choice(_BYTES)]) * random.choice((1, 2, 5, 9, 10))
    elif kind == 5:
        del log[at:]
    else:
        other = random.randrange(len(log))
        log[at:at] = log[other : other + random.randint(1, 64)]
