# What the kernels of the cleaner tell each other, as constants of C. codes.py has the same for Python.

# Records that are read before the first of them is looked up.
cdef enum:
    READ_AHEAD = 64

# How a record stands to the offset map: out of the range asked for, without a key, with one, with one that a later
# record has.
cdef enum:
    OUT_OF_RANGE = 0
    NO_KEY = 1
    KEYED = 2
    OLDER = 3

# What becomes of a batch.
cdef enum:
    FILTER = 0
    FILTER_OR_EMPTY = 1
    EMPTY = 2
    DROP = 3
    MARK = 4
    COPY = 5

# How it went; TOO_FAR: a timestamp cannot be told relative to the delete horizon.
cdef enum:
    DONE = 0
    PACKED = 1
    FULL = 2
    NO_ROOM = 3
    BAD = 4
    TOO_FAR = 5
