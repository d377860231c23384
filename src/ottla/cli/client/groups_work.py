"""What the commands of `ottla groups` do; groups_reset.py moves offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import typer

from ottla.cli.client.connection import (
    LOOK_AGAIN_S,
    Kafka,
    complain,
    did_you_mean,
    explain,
    fail,
    is_error,
    join_steps,
    next_step,
)
from ottla.cli.client.offsets import Bounds, bounds_of
from ottla.cli.json_text import to_json
from ottla.cli.tables import Column, print_heading, print_table
from ottla.cli.terminal import say

Partition = tuple[str, int]


class Owner(NamedTuple):
    """Who reads a partition now."""

    member: str
    instance: str | None
    client: str
    host: str


NOBODY = Owner("", None, "", "")

# A coordinator that has just begun reads first what its groups have done before.
_PASSING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")


def settle(kafka: Kafka, ask: Callable[[], Mapping[Any, Any]]) -> dict[Any, Any]:
    """The answers of a coordinator, asked again while it cannot tell."""
    deadline = time.monotonic() + kafka.timeout_s
    while True:
        found = kafka.settle(ask())
        passing = any(is_error(answer) and answer.name() in _PASSING for answer in found.values())
        if not passing or time.monotonic() > deadline:
            return found
        time.sleep(LOOK_AGAIN_S)


# -- list


def states(names: Iterable[str]) -> set[Any]:
    """The states with these names, however they are written."""
    from confluent_kafka import ConsumerGroupState

    known = {state.name.replace("_", "").lower(): state for state in ConsumerGroupState}
    found = set()
    for name in names:
        state = known.get(name.replace("-", "").replace("_", "").lower())
        if state is None:
            raise typer.BadParameter(f"--state {name}: there are {', '.join(sorted(known))}")
        found.add(state)
    return found


def _listed(kafka: Kafka, wanted: set[Any]) -> list[Any]:
    answer = kafka.admin.list_consumer_groups(states=wanted, request_timeout=kafka.timeout_s).result()
    for error in answer.errors:
        fail(explain(error.args[0]), next_step(error.args[0]))
    return sorted(answer.valid, key=lambda group: str(group.group_id))


def all_groups(kafka: Kafka) -> list[str]:
    return [group.group_id for group in _listed(kafka, set())]


def list_groups(kafka: Kafka, wanted: set[Any], *, long: bool, as_json: bool) -> None:
    rows: list[Sequence[object]] = []
    for group in _listed(kafka, wanted):
        fields = {
            "state": _word(group.state),
            "type": _word(group.type),
            "simple": group.is_simple_consumer_group,
        }
        if as_json:
            print(to_json({"group": group.group_id, **fields}))
        elif long:
            rows.append((group.group_id, fields["state"], fields["type"]))
        else:
            say(group.group_id)
    if long and not as_json:
        print_table(("group", "state", "type"), rows)


def _word(value: Any) -> str:
    return str(value.name).lower().replace("_", "-")


# -- describe


def describe(kafka: Kafka, names: Sequence[str], *, as_json: bool) -> bool:
    """Whether all groups are there."""
    if not names:
        return True
    unique = list(dict.fromkeys(names))
    found = settle(
        kafka, lambda: kafka.admin.describe_consumer_groups(unique, request_timeout=kafka.timeout_s)
    )
    all_there = True
    for name, group in found.items():
        if is_error(group) or (_word(group.state) == "dead" and not group.members):
            reason = explain(group) if is_error(group) else "there is no such group"
            near = did_you_mean(name, kafka.group_names())
            complain(f"{name}: {reason}", join_steps(near, "`ottla groups list` shows them"))
            all_there = False
            continue
        _describe_one(kafka, name, group, as_json=as_json)
    return all_there


def _describe_one(kafka: Kafka, name: str, group: Any, *, as_json: bool) -> None:
    offsets = committed(kafka, name)
    owners = _owners(group)
    wanted = sorted({*offsets, *owners})
    ends = bounds(kafka, wanted)
    partitions = [_row(at, offsets.get(at), owners.get(at, NOBODY), ends.get(at)) for at in wanted]
    lag = sum(row["lag"] or 0 for row in partitions)
    idle = [_owner(member) for member in group.members if not _assigned(member)]
    fields = {
        "group": name,
        "state": _word(group.state),
        "assignor": group.partition_assignor,
        "coordinator": None if group.coordinator is None else group.coordinator.id,
        "members": len(group.members),
        "lag": lag,
    }
    if as_json:
        without = [dict(zip(("member", "instance", "client", "host"), owner, strict=True)) for owner in idle]
        print(to_json({**fields, "partitions": partitions, "idle": without}))
        return
    assignor = f", {group.partition_assignor}" if group.partition_assignor else ""
    print_heading(name, f"{fields['state']}, members {len(group.members)}{assignor}, lag {lag}")
    rows: list[Sequence[object]] = []
    for row in partitions:
        numbers = ("-" if row[key] is None else row[key] for key in ("committed", "end", "lag"))
        member = row["instance"] or row["member"] or "-"
        rows.append(
            (row["topic"], row["partition"], *numbers, member, row["client"] or "-", row["host"] or "-")
        )
    rows += (
        ("-", "-", "-", "-", "-", owner.instance or owner.member, owner.client, owner.host) for owner in idle
    )
    if rows:
        names = ("topic", "partition>", "committed>", "end>", "lag>")
        reader = (Column("member", yields=True), Column("client", rank=2), Column("host", rank=1))
        print_table((*names, *reader), rows, indent="  ")


def _row(at: Partition, offset: int | None, owner: Owner, ends: Bounds | None) -> dict[str, Any]:
    end = None if ends is None else ends.latest
    return {
        "topic": at[0],
        "partition": at[1],
        "committed": offset,
        "end": end,
        "lag": None if offset is None or end is None else max(0, end - offset),
        "member": owner.member or None,
        "instance": owner.instance,
        "client": owner.client or None,
        "host": owner.host or None,
    }


def _owners(group: Any) -> dict[Partition, Owner]:
    owners = {}
    for member in group.members:
        for at in _assigned(member):
            owners[at.topic, at.partition] = _owner(member)
    return owners


def _owner(member: Any) -> Owner:
    return Owner(member.member_id, member.group_instance_id, member.client_id, member.host)


def _assigned(member: Any) -> Sequence[Any]:
    return member.assignment.topic_partitions if member.assignment else ()


def committed(kafka: Kafka, name: str) -> dict[Partition, int]:
    """What a group has committed."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    request = [ConsumerGroupTopicPartitions(name)]
    (found,) = settle(
        kafka, lambda: kafka.admin.list_consumer_group_offsets(request, request_timeout=kafka.timeout_s)
    ).values()
    if is_error(found):
        fail(f"{name}: {explain(found)}", kafka.next_step(found, name))
    return {
        (at.topic, at.partition): at.offset
        for at in found.topic_partitions
        if at.offset >= 0 and at.error is None
    }


def bounds(kafka: Kafka, wanted: Sequence[Partition]) -> Mapping[Partition, Bounds]:
    """The ends of the partitions that are still there: a group may remember deleted topics."""
    there = kafka.describe([topic for topic, _ in wanted])
    known = {
        (topic, partition.id)
        for topic, found in there.items()
        if not is_error(found)
        for partition in found.partitions
    }
    return bounds_of(kafka, [at for at in wanted if at in known])


# -- delete


def delete(kafka: Kafka, names: Sequence[str], *, if_exists: bool, as_json: bool) -> bool:
    """Whether all are gone."""
    unique = list(dict.fromkeys(names))
    answers = kafka.admin.delete_consumer_groups(unique, request_timeout=kafka.timeout_s)
    all_gone = True
    for name, result in kafka.settle(answers).items():
        if not is_error(result):
            print(to_json({"group": name, "deleted": True}) if as_json else f"{name}: deleted")
        elif not (if_exists and result.name() == "GROUP_ID_NOT_FOUND"):
            complain(f"{name}: {explain(result)}", kafka.next_step(result, name))
            all_gone = False
    return all_gone
