"""What to read, dealt out, and read: the whole reader without Spark. The data source and pipelines stand on this."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from ottla.errors import BrokerError, ConfigError, CorruptRecordError, UnknownTopicOrPartitionError
from ottla.spark import ranges
from ottla.spark.arrow import Builder, schema_of
from ottla.spark.offsets import EARLIEST, LATEST, Offsets
from ottla.spark.options import Bound, ReadOptions
from ottla.spark.ranges import Split
from ottla.spark.transport import BadBytes, Lost, Transport, open_transport
from ottla.storage.layout import TopicPartition

__all__ = [
    "DataLostError",
    "Split",
    "arrow_schema",
    "latest_offsets",
    "plan_splits",
    "read_split",
    "starting_offsets",
]


class DataLostError(BrokerError):
    """Offsets that should have been read are gone."""


class BadBatchError(CorruptRecordError):
    """A batch, or bytes where one should be, that cannot be read."""


def arrow_schema(options: ReadOptions) -> pa.Schema:
    """The schema of what read_split gives."""
    return schema_of(options.columns)


def starting_offsets(options: ReadOptions, transport: Transport | None = None) -> Offsets:
    """Where the read starts, for every partition that the options choose."""
    with _opened(options, transport) as source:
        return _resolve(options, source, options.starting, "startingOffsets")


def latest_offsets(options: ReadOptions, transport: Transport | None = None) -> Offsets:
    """Where the read ends now, for every partition that the options choose."""
    with _opened(options, transport) as source:
        return _resolve(options, source, options.ending, "endingOffsets")


def plan_splits(
    options: ReadOptions, start: Offsets, end: Offsets, transport: Transport | None = None
) -> list[Split]:
    """The offsets [start, end) of each partition, cut into pieces of about the target size."""
    with _opened(options, transport) as source:
        wanted = {tp: (start[tp], end[tp]) for tp in end if tp in start and start[tp] < end[tp]}
        sizes = {tp: source.marks(tp, *bounds, 2**62)[-1].size_bytes for tp, bounds in wanted.items()}
        step = ranges.step_bytes(sizes, options.target_bytes_per_partition, options.min_partitions)
        splits: list[Split] = []
        for partition, (first, last) in sorted(wanted.items()):
            marks = source.marks(partition, first, last, step)
            splits += ranges.cut(partition, marks, step, options.max_records_per_partition)
    return splits


def read_split(
    options: ReadOptions, split: Split, transport: Transport | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of one split, in order, as Arrow."""
    builder = Builder(options.columns, split.partition, split.start, split.end)
    with _opened(options, transport) as source:
        for block in source.read(split.partition, split.start, split.end):
            if isinstance(block, Lost):
                report_lost(options, split.partition, block)
                continue
            for found in (block,) if isinstance(block, BadBytes) else builder.take(block):
                if isinstance(found, BadBytes):
                    yield from builder.finish()
                    yield from _set_aside(options, split.partition, found, builder)
                else:
                    yield found
            if builder.is_past:
                break
    yield from builder.finish()


@contextmanager
def _opened(options: ReadOptions, given: Transport | None) -> Iterator[Transport]:
    """A transport for one call; one that was given is its owner's to close."""
    transport = given if given is not None else open_transport(options)
    try:
        yield transport
    finally:
        if given is None:
            transport.close()


def chosen_partitions(options: ReadOptions, transport: Transport) -> list[TopicPartition]:
    """The partitions to read; an error if one that was named is not there."""
    partitions = transport.partitions()
    topics = {partition.topic for partition in partitions}
    missing = [str(tp) for tp in options.assign if tp not in partitions]
    missing += [topic for topic in options.subscribe if topic not in topics]
    if missing:
        where = " and ".join(filter(None, (*options.paths, options.servers)))
        raise UnknownTopicOrPartitionError(f"not found in {where}: {', '.join(missing)}")
    return partitions


def _resolve(options: ReadOptions, transport: Transport, bound: Bound, option: str) -> Offsets:
    partitions = chosen_partitions(options, transport)
    if bound.everywhere is not None:
        return (
            transport.earliest(partitions) if bound.everywhere == EARLIEST else transport.latest(partitions)
        )
    earliest, latest = transport.earliest(partitions), transport.latest(partitions)
    there = [tp for tp in partitions if tp in earliest and tp in latest]
    if bound.time_ms is not None:
        return _at_times(options, transport, dict.fromkeys(there, bound.time_ms), latest, option)
    given = bound.times_ms or bound.by_partition
    if set(given) != set(there):
        raise ConfigError(_difference(option, set(there), set(given)))
    if bound.times_ms:
        return _at_times(options, transport, bound.times_ms, latest, option)
    named = {EARLIEST: earliest, LATEST: latest}
    wanted = {tp: named[offset][tp] if offset < 0 else offset for tp, offset in given.items()}
    return {tp: _in_range(options, tp, wanted[tp], earliest[tp], latest[tp], option) for tp in there}


def _difference(option: str, there: set[TopicPartition], given: set[TopicPartition]) -> str:
    missing = ", ".join(map(str, sorted(there - given)))
    strange = ", ".join(map(str, sorted(given - there)))
    parts = [
        f"does not say where {missing} begin" if missing else "",
        f"names {strange}, not to be read" if strange else "",
    ]
    return f"{option} must name exactly the partitions that are read, but {' and '.join(filter(None, parts))}"


def _at_times(
    options: ReadOptions,
    transport: Transport,
    times_ms: Mapping[TopicPartition, int],
    latest: Offsets,
    option: str,
) -> Offsets:
    found = transport.at_times(times_ms)
    late = [tp for tp, offset in found.items() if offset is None]
    if late and option == "startingOffsets" and not options.late_start_is_latest:
        raise ConfigError(
            f"no record of {', '.join(map(str, late))} is as late as the starting time;"
            " set startingOffsetsByTimestampStrategy=latest to begin there at the end"
        )
    return {tp: latest[tp] if offset is None else offset for tp, offset in found.items()}


def _in_range(
    options: ReadOptions, partition: TopicPartition, offset: int, earliest: int, latest: int, option: str
) -> int:
    if earliest <= offset <= latest:
        return offset
    if option == "startingOffsets" and offset < earliest:
        report_lost(options, partition, Lost(offset, earliest))
        return earliest
    if offset > latest:
        say(
            options,
            f"{option}: {partition} ends at {latest}, before {offset}. It may have been cut, or made anew",
        )
        return latest
    return earliest


def report_lost(options: ReadOptions, partition: TopicPartition, lost: Lost) -> None:
    say(
        options,
        f"{partition}: offsets {lost.from_offset} to {lost.to_offset - 1} are gone: retention, DeleteRecords or the"
        " deletion of the topic took them before they were read",
    )


def say(options: ReadOptions, what: str) -> None:
    """Fail or warn, as failOnDataLoss asks for."""
    if options.fail_on_data_loss:
        raise DataLostError(f"{what}. Set failOnDataLoss=false to go on without them")
    warnings.warn(what, RuntimeWarning, stacklevel=3)


def _set_aside(
    options: ReadOptions, partition: TopicPartition, bad: BadBytes, builder: Builder
) -> Iterator[pa.RecordBatch]:
    if not options.permissive:
        raise BadBatchError(f"{bad}. Set mode=permissive to go on behind it, or run `ottla log repair`")
    if options.quarantine_path is None:
        yield builder.corrupt(bad)
        return
    directory = f"{options.quarantine_path}/{partition}"
    os.makedirs(directory, exist_ok=True)
    # Named after where the bytes lie, so that a task that is tried again writes the same file.
    name = f"{directory}/{os.path.basename(bad.where)}-{bad.position}"
    about = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": bad.base_offset,
        "where": bad.where,
        "position": bad.position,
        "size": len(bad.data),
        "error": bad.meaning,
    }
    for path, data in ((f"{name}.bin", bad.data), (f"{name}.json", json.dumps(about, indent=1).encode())):
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
