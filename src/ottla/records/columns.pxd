# What kernels share, as constants of C: the columns of the rows that they write and read, statuses, sizes and attribute
# bits. columns.py has the same for Python.

# One batch: what kernel.scan finds out about it.
cdef enum:
    ROW = 16
    POSITION = 0
    SIZE = 1
    BASE_OFFSET = 2
    LAST_OFFSET = 3
    MAX_TIMESTAMP = 4
    LEADER_EPOCH = 5
    MAGIC = 6
    ATTRIBUTES = 7
    PRODUCER_ID = 8
    PRODUCER_EPOCH = 9
    BASE_SEQUENCE = 10
    COUNT = 11
    BASE_TIMESTAMP = 12
    CRC = 13
    LAST_DELTA = 14
    NULL_KEYS = 15

# One record: what record_kernel.decode finds out about it.
cdef enum:
    REC_ROW = 10
    REC_OFFSET = 0
    REC_TIMESTAMP = 1
    REC_KEY = 2
    REC_KEY_SIZE = 3
    REC_VALUE = 4
    REC_VALUE_SIZE = 5
    REC_HEADERS = 6
    REC_HEADER_COUNT = 7
    REC_START = 8
    REC_END = 9

# One record of a batch that is being compacted: what ahead_kernel.Ahead reads.
cdef enum:
    AHEAD_ROW = 6
    AHEAD_START = 0
    AHEAD_END = 1
    AHEAD_TIMESTAMP = 2
    AHEAD_OFFSET = 3
    AHEAD_KIND = 4
    AHEAD_VALUE_SIZE = 5

# What a check found.
cdef enum:
    OK = 0
    TRUNCATED = 1
    BAD_LENGTH = 2
    BAD_MAGIC = 3
    BAD_CRC = 4
    BAD_ATTRIBUTES = 5
    BAD_COUNT = 6
    BAD_OFFSETS = 7
    BAD_RECORD = 8

# Bytes of a v2 batch before its records, of all formats before what the length counts, of the smallest message of
# magic 0.
cdef enum:
    HEADER_SIZE = 61
    OVERHEAD_SIZE = 12
    LEGACY_SIZE = 26

# Bits of the attributes.
cdef enum:
    CODEC_MASK = 7
    LOG_APPEND_TIME = 8
    TRANSACTIONAL = 16
    CONTROL = 32
    DELETE_HORIZON = 64

cdef enum:
    INT32_MAX = 2147483647
