# Statuses, sizes and attribute bits that all kernels share, as constants of C. codes.py has the same for Python.

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
