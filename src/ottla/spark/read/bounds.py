"""Where a read starts and ends: from what the options say to an offset for every partition."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.errors import ConfigError, UnknownTopicOrPartitionError
from ottla.names import TopicPartition
from ottla.spark.offsets import EARLIEST, LATEST, Offsets
from ottla.spark.options import Bound, ReadOptions
from ottla.spark.read.loss import report, report_lost
from ottla.spark.transport.base import Lost, Transport


def chosen_partitions(options: ReadOptions, transport: Transport) -> list[TopicPartition]:
    """The partitions to read; an error if one that was named is not there."""
    partitions = transport.partitions()
    topics = {partition.topic for partition in partitions}
    missing = [str(tp) for tp in options.assign if tp not in partitions]
    missing += [topic for topic in options.subscribe if topic not in topics]
    if missing:
        where = " and ".join(filter(None, (*options.paths, options.servers)))
        kind = "topic or partition" if options.assign else "topic"
        raise UnknownTopicOrPartitionError(
            f"{where}: there is no {kind} {', '.join(missing)}; check the name, or create it first"
        )
    return partitions


def resolve(options: ReadOptions, transport: Transport, bound: Bound, option: str) -> Offsets:
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
        report(
            options,
            f"{option}: {partition} ends at {latest}, before {offset}. It may have been cut, or made anew",
        )
        return latest
    return earliest
