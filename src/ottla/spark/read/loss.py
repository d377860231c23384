"""What to do about data that is gone or cannot be read: fail, or go on and say so."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from ottla.errors import BrokerError, CorruptRecordError
from ottla.names import TopicPartition
from ottla.spark.options import ReadOptions
from ottla.spark.transport.base import BadBytes, Lost, Undecided


class DataLostError(BrokerError):
    """Offsets that should have been read are gone."""


class BadBatchError(CorruptRecordError):
    """A batch, or bytes where one should be, that cannot be read."""


def report_lost(
    options: ReadOptions, partition: TopicPartition, lost: Lost, *, is_expected: bool = False
) -> None:
    what = (
        f"{partition}: offsets {lost.from_offset} to {lost.to_offset - 1} are gone: retention, DeleteRecords or the"
        " deletion of the topic took them before they were read"
    )
    if is_expected:
        warnings.warn(what, RuntimeWarning, stacklevel=2)
    else:
        report(options, what)


def report(options: ReadOptions, what: str) -> None:
    """Fail or warn, as failOnDataLoss asks for."""
    if options.fail_on_data_loss:
        raise DataLostError(f"{what}. Set failOnDataLoss=false to go on without them")
    warnings.warn(what, RuntimeWarning, stacklevel=3)


def refuse(bad: BadBytes) -> BadBatchError:
    """What to raise in mode failfast."""
    if isinstance(bad, Undecided):
        return BadBatchError(
            f"{bad}. Set mode=permissive to set its records aside, or read another replica's directory;"
            " `ottla log verify` lists all that is damaged"
        )
    return BadBatchError(f"{bad}. Set mode=permissive to go on behind it, or run `ottla log repair`")


def quarantine(directory: str, partition: TopicPartition, bad: BadBytes) -> None:
    """Write the bytes, and what is known about them, into two files.

    They are named after where the bytes lie, so that a task that is tried again writes the same ones.
    """
    about = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": bad.from_offset,
        "where": bad.where,
        "position": bad.position,
        "size": len(bad.data),
        "error": bad.meaning,
    }
    place = Path(directory) / str(partition)
    place.mkdir(parents=True, exist_ok=True)
    name = f"{Path(bad.where).name}-{bad.position}"
    for suffix, data in ((".bin", bad.data), (".json", json.dumps(about, indent=1).encode())):
        temporary = place / f"{name}{suffix}.{os.getpid()}.tmp"
        temporary.write_bytes(data)
        temporary.replace(place / f"{name}{suffix}")
