"""What kernels share: the columns of the rows that they write and read, statuses, sizes and attribute bits.

columns.pxd has the same as constants of C.
"""

# One batch: what kernel.scan finds out about it.
ROW = 16
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP, LEADER_EPOCH, MAGIC, ATTRIBUTES = range(8)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT, BASE_TIMESTAMP, CRC, LAST_DELTA, NULL_KEYS = range(8, 16)

# One record: what record_kernel.decode finds out about it.
REC_ROW = 10
REC_OFFSET, REC_TIMESTAMP, REC_KEY, REC_KEY_SIZE, REC_VALUE = range(5)
REC_VALUE_SIZE, REC_HEADERS, REC_HEADER_COUNT, REC_START, REC_END = range(5, 10)

# One record of a batch that is being compacted: what ahead_kernel.Ahead reads.
AHEAD_ROW = 6
AHEAD_START, AHEAD_END, AHEAD_TIMESTAMP, AHEAD_OFFSET, AHEAD_KIND, AHEAD_VALUE_SIZE = range(6)

# What a check found.
OK, TRUNCATED, BAD_LENGTH, BAD_MAGIC, BAD_CRC, BAD_ATTRIBUTES, BAD_COUNT, BAD_OFFSETS, BAD_RECORD = range(9)

HEADER_SIZE = 61  # of a v2 batch
OVERHEAD_SIZE = 12  # offset and length, which the length does not count
LEGACY_SIZE = 26  # of the smallest message of magic 0

CODEC_MASK = 7
LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
CONTROL = 32
DELETE_HORIZON = 64

INT32_MAX = 2147483647
