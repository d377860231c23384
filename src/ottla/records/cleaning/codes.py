"""What the kernels of the cleaner tell each other. codes.pxd has the same as constants of C."""

READ_AHEAD = 64  # records that are read before the first of them is looked up

# How a record stands to the offset map: out of the range asked for, without a key, with one, with one that a later
# record has.
OUT_OF_RANGE, NO_KEY, KEYED, OLDER = range(4)

# What becomes of a batch.
FILTER, FILTER_OR_EMPTY, EMPTY, DROP, MARK, COPY = range(6)

# How it went; TOO_FAR: a timestamp cannot be told relative to the delete horizon.
DONE, PACKED, FULL, NO_ROOM, BAD, TOO_FAR = range(6)
