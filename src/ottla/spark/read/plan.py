"""What to read, dealt out, and read: the whole reader without Spark. The data source and pipelines stand on this."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ottla.spark.offsets import EARLIEST, Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.read import ranges
from ottla.spark.read.arrow import Builder, schema_of
from ottla.spark.read.bounds import resolve
from ottla.spark.read.loss import quarantine, refuse, report_lost
from ottla.spark.read.ranges import Split
from ottla.spark.transport.base import BadBytes, Lost, Transport
from ottla.spark.transport.open_transport import open_transport


def arrow_schema(options: ReadOptions) -> pa.Schema:
    """The schema of what read_split gives."""
    return schema_of(options.columns)


def starting_offsets(options: ReadOptions, transport: Transport | None = None) -> Offsets:
    """Where the read starts, for every partition that the options choose."""
    with _opened(options, transport) as opened:
        return resolve(options, opened, options.starting, "startingOffsets")


def latest_offsets(options: ReadOptions, transport: Transport | None = None) -> Offsets:
    """Where the read ends now, for every partition that the options choose."""
    with _opened(options, transport) as opened:
        return resolve(options, opened, options.ending, "endingOffsets")


def plan_splits(
    options: ReadOptions, start: Offsets, end: Offsets, transport: Transport | None = None
) -> list[Split]:
    """The offsets [start, end) of each partition, cut into pieces of about the target size."""
    with _opened(options, transport) as opened:
        wanted = {tp: (start[tp], end[tp]) for tp in end if tp in start and start[tp] < end[tp]}
        sizes = {tp: opened.marks(tp, *bounds, 2**62)[-1].size_bytes for tp, bounds in wanted.items()}
        step = ranges.step_bytes(sizes, options.target_bytes_per_partition, options.min_partitions)
        splits: list[Split] = []
        for partition, (first, last) in sorted(wanted.items()):
            marks = opened.marks(partition, first, last, step)
            splits += ranges.cut(partition, marks, step, options.max_records_per_partition)
    return splits


def read_split(
    options: ReadOptions, split: Split, transport: Transport | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of one split, in order, as Arrow."""
    if split.start >= split.end:
        return
    builder = Builder(options.columns, split.partition, split.start, split.end)
    with _opened(options, transport) as opened:
        for block in opened.read(split.partition, split.start, split.end):
            if isinstance(block, Lost):
                report_lost(options, split.partition, block, is_expected=_may_expire(options))
                # The batch that comes next may begin before it: DeleteRecords takes single records too.
                yield from builder.finish()
                builder = Builder(options.columns, split.partition, block.to_offset, split.end)
                continue
            for found in (block,) if isinstance(block, BadBytes) else builder.take(block):
                if not isinstance(found, BadBytes):
                    yield found
                    continue
                if not split.owns(found.from_offset, found.to_offset):
                    continue
                yield from builder.finish()
                if not options.permissive:
                    raise refuse(found)
                if options.quarantine_path is None:
                    yield builder.corrupt(found)
                else:
                    quarantine(options.quarantine_path, split.partition, found)
            if builder.is_past:
                break
    yield from builder.finish()


def _may_expire(options: ReadOptions) -> bool:
    """Whether what retention takes before it is read is no loss: whatever is there was asked for, and it is not."""
    return not options.is_stream and options.starting.everywhere == EARLIEST


@contextmanager
def _opened(options: ReadOptions, given: Transport | None) -> Iterator[Transport]:
    """A transport for one call; one that was given is its owner's to close."""
    transport = given if given is not None else open_transport(options)
    try:
        yield transport
    finally:
        if given is None:
            transport.close()
