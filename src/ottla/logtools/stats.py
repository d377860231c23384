"""Counts what a segment holds, from the headers of its batches alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ottla.logtools.listing import SegmentFiles, open_if_there
from ottla.records import batch, kernel
from ottla.records.compression.codec import Codec
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.scan import Scan, Window


@dataclass(slots=True)
class SegmentStats:
    """One segment. Offsets and times are None where there are none."""

    file: str
    base_offset: int
    size: int
    index_size: int = 0  # of all its index files
    batches: int = 0
    records: int = 0  # those of old compressed messages are not counted
    first_offset: int | None = None
    last_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    largest_batch: int = 0
    compressed_size: int = 0  # bytes of compressed batches
    codecs: str = ""  # those in use, in the order of their numbers
    transactional: int = 0  # batches
    control: int = 0  # batches
    old_format: int = 0  # messages of magic 0 and 1
    unreadable: int = 0  # bytes at the end


def segment_stats(fs: FileSystem, segment: SegmentFiles) -> SegmentStats | None:
    """None if the segment is gone meanwhile."""
    file = open_if_there(fs, segment.path(layout.LOG))
    if file is None:
        return None
    attributes = Counter[int]()
    try:
        size = file.size()
        stats = SegmentStats(segment.path(layout.LOG), segment.base_offset, size)
        scan = Scan(file, size, flags=0)
        for window in scan:
            _add(stats, attributes, window)
        stats.unreadable = size - scan.position
    finally:
        file.close()
    stats.index_size = sum(size for suffix, size in segment.sizes.items() if suffix != layout.LOG)
    stats.codecs = " ".join(
        Codec(number).name.lower() for number in sorted({key & batch.CODEC_MASK for key in attributes})
    )
    stats.transactional = sum(count for key, count in attributes.items() if key & batch.TRANSACTIONAL)
    stats.control = sum(count for key, count in attributes.items() if key & batch.CONTROL)
    return stats


def _add(stats: SegmentStats, attributes: Counter[int], window: Window) -> None:
    def column(number: int) -> list[int]:
        return window.rows[number : window.count * kernel.ROW : kernel.ROW].tolist()

    sizes, kinds, magics = column(kernel.SIZE), column(kernel.ATTRIBUTES), column(kernel.MAGIC)
    times = [time for time in (*column(kernel.BASE_TIMESTAMP), *column(kernel.MAX_TIMESTAMP)) if time >= 0]
    if stats.first_offset is None:
        stats.first_offset = window.rows[kernel.BASE_OFFSET]
    stats.last_offset = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET]
    if times:
        stats.min_timestamp = min([min(times), *_known(stats.min_timestamp)])
        stats.max_timestamp = max([max(times), *_known(stats.max_timestamp)])
    stats.batches += window.count
    stats.records += sum(count for count in column(kernel.COUNT) if count > 0)
    stats.largest_batch = max(stats.largest_batch, max(sizes))
    stats.old_format += window.count - magics.count(batch.MAGIC_V2)
    attributes.update(kinds)
    if any(kind & batch.CODEC_MASK for kind in set(kinds)):
        stats.compressed_size += sum(
            size for size, kind in zip(sizes, kinds, strict=True) if kind & batch.CODEC_MASK
        )


def _known(time: int | None) -> list[int]:
    return [] if time is None else [time]
