"""How many files and sockets this process may hold open, and what each part of a broker may have of that.

Some are the broker's own (its store, locks, checkpoints, work in the background). What is left is shared: one half for
the files of logs, which are closed and opened again as they are needed (handles.py), one half for connections, which
are refused before files suffer.
"""

from __future__ import annotations

from typing import NamedTuple

_OWN = 64
_OWN_EACH_DIR = 16
_MOST_FILES = 4096  # more are of no use: the kernel finds a file again in microseconds
_LEAST = 16
_PARTITIONS_EACH = 10
_MOST_PARTITIONS = 100_000


class Shares(NamedTuple):
    """Of the descriptors of a process."""

    loop_files: int  # open files of logs that belong to the loop
    dir_files: int  # of those that belong to the thread of a log directory, for each of them
    connections: int
    partitions: int  # what a broker may hold, if its settings do not say


def shares(limit: int, log_dirs: int) -> Shares:
    """For a process that may have `limit` descriptors and keeps `log_dirs` log directories."""
    left = max(4 * _LEAST, limit - _OWN - _OWN_EACH_DIR * log_dirs)
    files = min(left // 2, _MOST_FILES)
    return Shares(
        loop_files=max(_LEAST, files // 2),
        dir_files=max(_LEAST, files // 2 // max(1, log_dirs)),
        connections=left - files,
        partitions=min(_PARTITIONS_EACH * limit, _MOST_PARTITIONS),
    )
