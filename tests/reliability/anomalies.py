"""Finds what must not be in a recorded history of transactions and polls, in the manner of the published workloads.

A history is what clients saw: which transactions they wrote and how those ended, and what each poll of each reader
returned. Nothing is taken from the broker. A reader here is one stretch of reading: after a rebalance or a seek the
same consumer is another reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Place = tuple[str, int]  # topic and partition


class Value(NamedTuple):
    """What a record holds. Numbers of a key rise; an attempt to write it is told apart from the next."""

    key: str
    number: int
    attempt: str

    def __str__(self) -> str:
        return f"{self.key} {self.number} {self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Value:
        key, number, attempt = text.split(" ")
        return cls(key, int(number), attempt)


class Outcome(Enum):
    """What the writer knows of the end of its transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"  # it asked for that, or never asked for anything
    UNKNOWN = "unknown"  # it asked for a commit, and died, or heard no answer


class Transaction(NamedTuple):
    writer: str
    values: Sequence[tuple[Place, Value]]
    outcome: Outcome


class Poll(NamedTuple):
    """Records of one partition that a reader got at once, with their offsets."""

    reader: str
    place: Place
    records: Sequence[tuple[int, Value]]


@dataclass
class History:
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)  # those of a reader in their order


class Anomaly(NamedTuple):
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def find(history: History) -> list[Anomaly]:
    """Everything that is wrong. Each partition must have been read to its end by somebody."""
    found: dict[Place, dict[int, Value]] = defaultdict(dict)
    anomalies: list[Anomaly] = []
    for poll in history.polls:
        for offset, value in poll.records:
            if found[poll.place].setdefault(offset, value) != value:
                text = f"{poll.place} holds {value} at {offset} for {poll.reader}, before it was another"
                anomalies.append(Anomaly("changed record", text))
    anomalies += _ends(history, found)
    for place, records in found.items():
        anomalies += _order(place, records)
    anomalies += _polls(history, found)
    return anomalies


def _ends(history: History, found: Mapping[Place, Mapping[int, Value]]) -> Iterator[Anomaly]:
    """What is committed is read, what is aborted is not, and the rest is all there or not at all."""
    seen = {place: set(records.values()) for place, records in found.items()}
    for transaction in history.transactions:
        there = [value in seen.get(place, ()) for place, value in transaction.values]
        for (place, value), is_there in zip(transaction.values, there, strict=True):
            if transaction.outcome is Outcome.COMMITTED and not is_there:
                yield Anomaly("lost write", f"{value} of {transaction.writer} is not in {place}")
            if transaction.outcome is Outcome.ABORTED and is_there:
                yield Anomaly("aborted read", f"{value} of {transaction.writer} is in {place}")
        if transaction.outcome is Outcome.UNKNOWN and any(there) != all(there):
            yield Anomaly("torn transaction", f"{sum(there)} of {len(there)} of {transaction.writer}'s")


def _order(place: Place, records: Mapping[int, Value]) -> Iterator[Anomaly]:
    """Each number of each key comes once, and the higher one later."""
    last: dict[str, int] = {}
    numbers: set[tuple[str, int]] = set()
    for offset, value in sorted(records.items()):
        if (value.key, value.number) in numbers:
            yield Anomaly("duplicate", f"{value} at {offset} of {place} is there once more")
        elif value.number < last.get(value.key, value.number):
            yield Anomaly("order", f"{value} at {offset} of {place} comes after {last[value.key]}")
        numbers.add((value.key, value.number))
        last[value.key] = max(value.number, last.get(value.key, value.number))


def _polls(history: History, found: Mapping[Place, Mapping[int, Value]]) -> Iterator[Anomaly]:
    """What a reader gets goes on where it was, with nothing left out that somebody else got there."""
    known = {place: sorted(records) for place, records in found.items()}
    ranks = {place: {offset: rank for rank, offset in enumerate(offsets)} for place, offsets in known.items()}
    last: dict[tuple[str, Place], int] = {}
    for poll in history.polls:
        reader = (poll.reader, poll.place)
        for offset, value in poll.records:
            before = last.get(reader)
            if before is not None and offset <= before:
                text = f"{poll.reader} got {value} at {offset} of {poll.place} after {before}"
                yield Anomaly("non-monotonic poll", text)
            elif before is not None and ranks[poll.place][offset] != ranks[poll.place][before] + 1:
                left_out = known[poll.place][ranks[poll.place][before] + 1]
                text = f"{poll.reader} got {offset} of {poll.place} after {before}, without {left_out}"
                yield Anomaly("skipped poll", text)
            last[reader] = offset


def summary(anomalies: Sequence[Anomaly], most: int = 10) -> str:
    lines = [str(anomaly) for anomaly in anomalies[:most]]
    return "\n".join([f"{len(anomalies)} anomalies", *lines])
