"""The 61-byte header of a v2 record batch: reading it, and changing what a broker may change in place.

    base offset i64 · length i32 · leader epoch i32 · magic i8 · CRC u32 · attributes i16 ·
    last offset delta i32 · base timestamp i64 · max timestamp i64 · producer id i64 · producer epoch i16 ·
    base sequence i32 · record count i32

The length counts what follows it. The CRC-32C covers what follows the CRC, so that a leader can give a batch
its offset and epoch without computing it anew.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records import kernel
from ottla.records.compression.codec import Codec

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
OVERHEAD_SIZE: Final = 12  # offset and length, which the length does not count
MAGIC_V2: Final = 2

MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

OFFSETS: Final = Struct(">qii")  # base offset, length, leader epoch: what a leader writes into a batch
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")


class BatchHeader(NamedTuple):
    """The fields of a v2 batch's header, in their order on disk."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here

    @property
    def size(self) -> int:
        return self.length + OVERHEAD_SIZE

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise CorruptRecordError(f"the batch at offset {self.base_offset} has unknown codec {number}")
        return Codec(number)

    @property
    def timestamp_type(self) -> int:
        """0: the producer set the timestamps; 1: the broker did, and all records have `max_timestamp`."""
        return (self.attributes & LOG_APPEND_TIME) >> 3

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which a cleaner may drop this batch's tombstones."""
        return bool(self.attributes & DELETE_HORIZON)


def parse_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; only its magic is checked (see kernel.scan for the rest)."""
    view = memoryview(buf)
    if len(view) - position < HEADER_SIZE:
        raise CorruptRecordError(f"the batch header at position {position} is cut short")
    header = BatchHeader._make(HEADER.unpack_from(view, position))
    if header.magic != MAGIC_V2:
        raise CorruptRecordError(f"the batch at position {position} has magic {header.magic}, not 2")
    return header


def compute_crc(buf: Buffer, position: int, size: int) -> int:
    """The CRC that the batch of `size` bytes at `position` should hold."""
    return kernel.checksum(memoryview(buf)[position + ATTRIBUTES_AT : position + size])


def write_crc(buf: bytearray | memoryview, position: int, size: int) -> None:
    """Make the CRC of the `size` bytes long batch right."""
    _CRC.pack_into(buf, position + CRC_AT, compute_crc(buf, position, size))


def patch_offsets(buf: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `position` its place in the log. The CRC does not cover these fields."""
    length = int.from_bytes(buf[position + 8 : position + OVERHEAD_SIZE], "big")
    OFFSETS.pack_into(buf, position, base_offset, length, leader_epoch)


def patch_times(
    buf: bytearray | memoryview, position: int, size: int, attributes: int, max_timestamp: int
) -> None:
    """Replace attributes and largest timestamp of the `size` bytes long batch, and renew its CRC."""
    _ATTRIBUTES.pack_into(buf, position + ATTRIBUTES_AT, attributes)
    _TIMESTAMP.pack_into(buf, position + MAX_TIMESTAMP_AT, max_timestamp)
    write_crc(buf, position, size)
