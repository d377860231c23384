"""`ottla groups reset`: set where a group goes on reading."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import typer

from ottla.cli.client.connection import (
    Kafka,
    complain,
    did_you_mean,
    explain,
    fail,
    is_error,
    join_steps,
    next_step,
)
from ottla.cli.client.groups_work import Partition, bounds, committed, settle
from ottla.cli.client.offsets import OffsetSpec, resolve
from ottla.cli.json_text import to_json
from ottla.cli.tables import print_table
from ottla.words import counted


class Shift(NamedTuple):
    """So many records on from where a group is, or back."""

    number: int


def reset(
    kafka: Kafka,
    name: str,
    target: OffsetSpec | Shift,
    topics: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> bool:
    """Whether all offsets were set, or could be."""
    before = committed(kafka, name)
    wanted = _wanted(kafka, topics) if topics else sorted(before)
    if not wanted:
        near = "" if name in (known := kafka.group_names()) else did_you_mean(name, known)
        fail(f"{name} has no offsets", join_steps(near, "name the topics with --topic"))
    _check_idle(kafka, name)
    ends = bounds(kafka, wanted)
    places = (
        _shifted(name, target, before, ends) if isinstance(target, Shift) else resolve(kafka, target, ends)
    )
    after = {
        at: min(max(offset, ends[at].earliest), ends[at].latest) for at, offset in sorted(places.items())
    }
    failed = {} if dry_run else _alter(kafka, name, after)
    rows: list[Sequence[object]] = []
    for at, offset in after.items():
        if at in failed:
            complain(f"{at[0]}-{at[1]}: {explain(failed[at])}", next_step(failed[at]))
        elif as_json:
            fields = {"topic": at[0], "partition": at[1], "before": before.get(at), "after": offset}
            print(to_json({"group": name, **fields, "done": not dry_run}))
        else:
            rows.append((at[0], at[1], before.get(at, "-"), offset))
    if not as_json:
        print_table(("topic", "partition>", "before>", "after>"), rows)
        if dry_run:
            print("nothing was changed: this was a dry run", file=sys.stderr)
    return not failed


def _shifted(
    name: str, shift: Shift, before: Mapping[Partition, int], wanted: Iterable[Partition]
) -> dict[Partition, int]:
    places = {}
    for at in wanted:
        if at not in before:
            fail(f"{name} has no offset in {at[0]}-{at[1]} to go on from", "set one with --to")
        places[at] = before[at] + shift.number
    return places


def _check_idle(kafka: Kafka, name: str) -> None:
    """A reader would overwrite what is set here with its next commit."""
    group = settle(
        kafka, lambda: kafka.admin.describe_consumer_groups([name], request_timeout=kafka.timeout_s)
    )[name]
    if not is_error(group) and group.members:
        fail(f"{name} has {counted(len(group.members), 'member')}", "stop who reads in it, then try again")


def _wanted(kafka: Kafka, topics: Sequence[str]) -> list[Partition]:
    wanted: set[Partition] = set()
    for text in topics:
        topic, colon, numbers = text.partition(":")
        if colon and not all(number.isdecimal() for number in numbers.split(",")):
            raise typer.BadParameter(f"--topic {text!r}: write TOPIC or TOPIC:0,2")
        chosen = [int(number) for number in numbers.split(",")] if colon else None
        wanted.update((topic, number) for number in kafka.partitions(topic, chosen))
    return sorted(wanted)


def _alter(kafka: Kafka, name: str, offsets: Mapping[Partition, int]) -> dict[Partition, Any]:
    """Set the offsets; the partitions for which that failed, and why."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    request = ConsumerGroupTopicPartitions(
        name, [TopicPartition(*at, offset) for at, offset in offsets.items()]
    )
    (found,) = settle(
        kafka, lambda: kafka.admin.alter_consumer_group_offsets([request], request_timeout=kafka.timeout_s)
    ).values()
    if is_error(found):
        return dict.fromkeys(offsets, found)
    return {(at.topic, at.partition): at.error for at in found.topic_partitions if at.error is not None}
