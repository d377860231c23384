"""Statuses, sizes and attribute bits that all kernels share. codes.pxd has the same as constants of C."""

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
