"""A segment's indexes, built anew from its log: by recovery, and wherever whole segments are written.

`begin` forgets what was known of the segment, `add` counts good batches in, `end` cuts off what comes behind them.
"""

from __future__ import annotations

from array import array

from ottla.config import LogConfig
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.log.segment import Segment


def begin(segment: Segment, config: LogConfig, *, aside: bool = False) -> None:
    """`aside`: the files of the old indexes stay until `install_indexes`."""
    if aside:
        for suffix, index in segment.indexes():
            index.close()
            index.renamed(segment.path(suffix) + layout.TEMPORARY)
    segment.forget(config)


def add(segment: Segment, rows: array[int], count: int, good_bytes: int) -> None:
    """Batches up to position `good_bytes` are whole and in order."""
    offset_entries, time_entries = segment.index_rows(rows, count)
    segment.offset_index.append_raw(offset_entries)
    segment.time_index.append_raw(time_entries)
    segment.size = good_bytes


def end(segment: Segment) -> None:
    """Cut what was not good."""
    if segment.file.size() > segment.size:
        segment.file.truncate(segment.size)
        segment.file.sync()
    segment.become_inactive()


def install_indexes(fs: FileSystem, directory: str, segment: Segment) -> None:
    """Put indexes rebuilt aside in the place of the old ones, each of them whole or not at all."""
    for suffix, index in segment.indexes():
        path = segment.path(suffix)
        if fs.exists(index.path):
            index.sync()
            index.close()
            fs.rename(index.path, path)
        elif fs.exists(path):
            fs.unlink(path)
        index.renamed(path)
    fs.sync_dir(directory)
