"""Places in a partition as a user names them (earliest, 42, -10, a time), and the offsets they stand for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

import typer

from ottla.cli.client.connection import LOOK_AGAIN_S, Kafka, explain, fail, is_error, next_step
from ottla.cli.values import parse_time

# The special timestamps of a ListOffsets request.
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3

# A partition that was made a moment ago, or moves, has a leader soon.
_PASSING = (
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "OFFSET_NOT_AVAILABLE",
    "UNKNOWN_LEADER_EPOCH",
)

PLACES = "earliest, latest, an offset, -N (the last N), a time, or @MS (epoch milliseconds)"


class Kind(Enum):
    EARLIEST = auto()
    LATEST = auto()
    MAX_TIMESTAMP = auto()
    OFFSET = auto()
    LAST = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    kind: Kind
    number: int = 0


class Bounds(NamedTuple):
    """The offsets of the first record and behind the last one."""

    earliest: int
    latest: int


_WORDS = {
    "earliest": Kind.EARLIEST,
    "beginning": Kind.EARLIEST,
    "latest": Kind.LATEST,
    "end": Kind.LATEST,
    "max-timestamp": Kind.MAX_TIMESTAMP,
}


def parse_place(text: str) -> OffsetSpec:
    if text in _WORDS:
        return OffsetSpec(_WORDS[text])
    digits = text.lstrip("-@")
    if digits.isascii() and digits.isdigit() and len(text) - len(digits) <= 1:
        kind = {"-": Kind.LAST, "@": Kind.TIME}.get(text[0], Kind.OFFSET)
        return OffsetSpec(kind, int(digits))
    try:
        return OffsetSpec(Kind.TIME, parse_time(text) or 0)
    except typer.BadParameter:
        raise typer.BadParameter(f"{text!r} is not a place in a log; write {PLACES}") from None


def list_offsets(
    kafka: Kafka, wanted: Mapping[tuple[str, int], int], *, committed: bool = False
) -> dict[tuple[str, int], Any]:
    """The broker's offset and timestamp for each: a time in milliseconds or one of the three above."""
    deadline = time.monotonic() + kafka.timeout_s
    found = _ask(kafka, wanted, committed=committed)
    while failed := {partition: result for partition, result in found.items() if is_error(result)}:
        lasting = {at: error for at, error in failed.items() if error.name() not in _PASSING}
        for (topic, partition), error in lasting.items() if time.monotonic() < deadline else failed.items():
            fail(f"{topic}-{partition}: {explain(error)}", next_step(error))
        time.sleep(LOOK_AGAIN_S)
        found |= _ask(kafka, {partition: wanted[partition] for partition in failed}, committed=committed)
    for (topic, partition), result in found.items():
        # Only a time may have no record; the client says so too when a connection breaks at the wrong moment.
        if result.offset < 0 and wanted[topic, partition] in (LATEST, EARLIEST):
            fail(f"{topic}-{partition}: no offset came from the broker", "try again")
    return found


def _ask(
    kafka: Kafka, wanted: Mapping[tuple[str, int], int], *, committed: bool
) -> dict[tuple[str, int], Any]:
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    if not wanted:
        return {}
    spec: Any = OffsetSpec
    answers = kafka.admin.list_offsets(
        {TopicPartition(*partition): spec(value) for partition, value in wanted.items()},
        isolation_level=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
        request_timeout=kafka.timeout_s,
    )
    return {(at.topic, at.partition): result for at, result in kafka.settle(answers).items()}


def bounds_of(
    kafka: Kafka, partitions: Iterable[tuple[str, int]], *, committed: bool = False
) -> dict[tuple[str, int], Bounds]:
    asked = list(partitions)
    first = list_offsets(kafka, dict.fromkeys(asked, EARLIEST))
    last = list_offsets(kafka, dict.fromkeys(asked, LATEST), committed=committed)
    return {partition: Bounds(first[partition].offset, last[partition].offset) for partition in asked}


def resolve(
    kafka: Kafka, place: OffsetSpec, bounds: Mapping[tuple[str, int], Bounds]
) -> dict[tuple[str, int], int]:
    """The offset that a place stands for in each partition; behind the last record where no record is so late."""
    if place.kind is Kind.OFFSET:
        return dict.fromkeys(bounds, place.number)
    if place.kind in (Kind.TIME, Kind.MAX_TIMESTAMP):
        value = place.number if place.kind is Kind.TIME else MAX_TIMESTAMP
        found = list_offsets(kafka, dict.fromkeys(bounds, value))
        return {
            partition: found[partition].offset if found[partition].offset >= 0 else bound.latest
            for partition, bound in bounds.items()
        }
    if place.kind is Kind.EARLIEST:
        return {partition: bound.earliest for partition, bound in bounds.items()}
    number = place.number if place.kind is Kind.LAST else 0
    return {partition: max(bound.earliest, bound.latest - number) for partition, bound in bounds.items()}
