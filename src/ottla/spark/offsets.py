"""Offsets of many partitions: JSON in and out, and how much of what is new one micro-batch takes. Pure.

In JSON, as Spark's Kafka connector writes it: `{"topic": {"0": 23, "1": -1}}`, where -2 is the earliest offset and -1
the latest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ottla.errors import ConfigError
from ottla.names import TopicPartition

Offsets = dict[TopicPartition, int]

EARLIEST = -2
LATEST = -1


def parse(text: str, option: str) -> Offsets:
    """The offsets (or times) in a JSON text; `option` is for the message."""
    try:
        return from_nested(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        example = '{"topic": {"0": 23, "1": -1}}'
        raise ConfigError(
            f"{option} is not offsets by topic and partition, such as {example}: {text}"
        ) from None


def parse_partitions(text: str, option: str) -> tuple[TopicPartition, ...]:
    """`{"topic": [0, 1]}`, as the option `assign` has it."""
    try:
        found = json.loads(text)
        return tuple(sorted(TopicPartition(topic, int(p)) for topic, ps in found.items() for p in ps))
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f'{option} is not partitions by topic, such as {{"topic": [0, 1]}}: {text}'
        ) from None


def from_nested(nested: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def to_nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def render(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(to_nested(offsets), separators=(",", ":"))


def count(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """How many offsets lie between."""
    return sum(max(0, offset - start.get(partition, offset)) for partition, offset in end.items())


def limit(start: Offsets, end: Offsets, most: int) -> Offsets:
    """An end nearer to `start`, with at most `most` offsets in all: each partition's share is as its backlog's.

    Every turn takes at least one offset while there is one, so that a limit smaller than the number of partitions
    does not stand still.
    """
    backlog = {tp: max(0, offset - start.get(tp, offset)) for tp, offset in end.items()}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    taken = {tp: size * most // total for tp, size in backlog.items()}
    left = most - sum(taken.values())
    # What rounding left over goes to the partitions that it took the most from.
    for tp in sorted(backlog, key=lambda tp: (-(backlog[tp] * most % total), tp)):
        if left > 0 and taken[tp] < backlog[tp]:
            taken[tp] += 1
            left -= 1
    return {tp: start.get(tp, offset - backlog[tp]) + taken[tp] for tp, offset in end.items()}
