"""Types and contracts of the compiled loops over batches; kernel.py says how they work.

All positions are absolute in `buf`. Every function takes any contiguous bytes-like object (bytes,
bytearray, memoryview, mmap), checks every length before it uses it, and never reads at or past `end`. A
range that is not inside the buffer is the caller's mistake: ValueError. Numbers are int64.
"""

from array import array
from typing import Final

from typing_extensions import Buffer

from ottla.records.index_kernel import epoch_rows as epoch_rows
from ottla.records.index_kernel import index_floor as index_floor
from ottla.records.index_kernel import index_rows as index_rows
from ottla.records.index_kernel import producer_rows as producer_rows
from ottla.records.index_kernel import rows_in_order as rows_in_order
from ottla.records.index_kernel import transaction_rows as transaction_rows
from ottla.records.record_kernel import check_records as check_records
from ottla.records.record_kernel import decode as decode
from ottla.records.record_kernel import encode_records as encode_records
from ottla.records.record_kernel import headers as headers

COMPILED: bool

# What a check found. TRUNCATED: good so far, but the next batch (or record) ends past `end`.
OK: Final = 0
TRUNCATED: Final = 1
BAD_LENGTH: Final = 2
BAD_MAGIC: Final = 3
BAD_CRC: Final = 4
BAD_ATTRIBUTES: Final = 5
BAD_COUNT: Final = 6
BAD_OFFSETS: Final = 7
BAD_RECORD: Final = 8
STATUS_MEANING: dict[int, str]

# scan() writes one row of ROW numbers (int64) a batch; these are the columns.
ROW: Final = 16
POSITION: Final = 0
SIZE: Final = 1  # with the 12 bytes before the length's end
BASE_OFFSET: Final = 2  # of a magic 0/1 message: its offset
LAST_OFFSET: Final = 3  # of a magic 0/1 message: its offset
MAX_TIMESTAMP: Final = 4  # -1 for magic 0
LEADER_EPOCH: Final = 5  # -1 for magic 0/1
MAGIC: Final = 6
ATTRIBUTES: Final = 7
PRODUCER_ID: Final = 8  # -1 if none, and for magic 0/1
PRODUCER_EPOCH: Final = 9
BASE_SEQUENCE: Final = 10
COUNT: Final = 11  # -1 for a compressed magic 0/1 wrapper
BASE_TIMESTAMP: Final = 12
CRC: Final = 13  # the stored one
LAST_DELTA: Final = 14
NULL_KEYS: Final = 15  # records without a key where records were checked, else -1

# scan() flags
CHECK_CRC: Final = 1
CHECK_RECORDS: Final = (
    2  # every record of uncompressed v2 batches; key and value of a plain magic 0/1 message
)

# decode() writes one row of REC_ROW numbers (int64) a record; these are the columns.
REC_ROW: Final = 10
REC_OFFSET: Final = 0
REC_TIMESTAMP: Final = 1
REC_KEY: Final = 2  # position
REC_KEY_SIZE: Final = 3  # -1 for null
REC_VALUE: Final = 4
REC_VALUE_SIZE: Final = 5  # -1 for null
REC_HEADERS: Final = 6  # position of the first header's key length
REC_HEADER_COUNT: Final = 7
REC_START: Final = 8  # position of the record's length varint
REC_END: Final = 9

def scan(
    buf: Buffer, start: int, end: int, rows: array[int], flags: int, shift: int = 0
) -> tuple[int, int, int]:
    """Walk whole batches of any magic: (rows written, position after the last good batch, status).

    Stops with OK at `end` or when `rows` is full, with TRUNCATED before a batch that is not all there, with
    BAD_* at a batch that is wrong. That batch is not counted; if its magic is known, its header is whole
    and a row is free, its header fields are written there all the same. Checked in this order: length (v2:
    >= 49, v1: >= 22, v0: >= 14) and magic (0..2), CRC if asked for, codec (<= 4, magic 0/1: <= 3), 0 <=
    count <= last_offset_delta + 1, base_offset >= 0 and the offset after the last within 64 bits, records if
    asked for. Offset deltas of records must grow and stay <= last_offset_delta. `shift` is added to the
    positions in the rows: where `buf` begins in a file. The GIL is released, but for the CRCs of old
    messages, and for all CRCs where the processor has no CRC-32C; so callers use at most 2048 rows.
    """

def checksum(buf: Buffer) -> int:
    """CRC-32C of all of `buf`."""

def check_batch(buf: Buffer, start: int, end: int) -> tuple[int, ...]:
    """Check the one v2 batch at `start` for a leader's append, in a single call.

    (status, size, base_offset, attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id,
    producer_epoch, base_sequence, count, bad_index, min_ts, max_ts, max_ts_index, null_keys).

    Header and CRC in the order of scan(), but offsets must be dense (count is last_offset_delta + 1, at
    least 1), and for uncompressed batches every record (offset deltas 0, 1, 2, ...). For compressed ones
    bad_index, min_ts, max_ts and max_ts_index are -1 and null_keys is 0: decompress, then check_records. A
    magic other than 2 gives BAD_MAGIC. Where there is no whole v2 header, size is 0 and the fields have no
    meaning.
    """

def find_batch(buf: Buffer, start: int, end: int, offset: int) -> tuple[int, int, int, int, int]:
    """The first batch whose last offset is >= offset: (status, position, size, base_offset, last_offset).

    Looks at headers only (no CRC). OK when found; TRUNCATED with the position reached when the headers in
    [start, end) run out (the batch at that position may begin before `end` with its header cut; a body that
    ends past `end` is no obstacle: the position may then lie past `end`). BAD_LENGTH, BAD_MAGIC or
    BAD_OFFSETS for a header that makes no sense.
    """
