# The columns of the rows that kernels write and read, as constants of C. columns.py has the same for Python.

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
