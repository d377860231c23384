"""`ottla records`: delete the beginning of partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.client.connection import Kafka, complain, confirm, connect, explain, fail, is_error, next_step
from ottla.cli.client.offsets import OffsetSpec, bounds_of, parse_place, resolve
from ottla.cli.command_group import command_group
from ottla.cli.json_text import to_json
from ottla.cli.options import ConnectionOptions, JsonOption, PartitionsOption, TopicArgument, YesOption

app = command_group("Delete records from the beginning of partitions.")


@app.callback()
def _group() -> None:
    """Only there to make `delete` a command of a group."""


@app.command()
def delete(
    connection: ConnectionOptions,
    topic: TopicArgument,
    before: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="Delete what lies before: an offset, -N (keep the last N), a time, end."
        ),
    ] = "end",
    partition: PartitionsOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> bool:
    """Delete the records of a topic up to a place, or all of them.

    Their offsets are not used again. A time is ISO 8601 (UTC unless it names a zone), a time ago such as -15m,
    or @ and epoch milliseconds; it stands for the first record of that time or later, which stays.

    \b
    Examples:
      ottla records delete orders --before 1000 --partition 0
      ottla records delete orders --before -7d --yes
    """
    place = parse_place(before)
    with connect(connection) as kafka:
        targets = _targets(kafka, topic, kafka.partitions(topic, partition), place)
        if not targets:
            complain("there is nothing to delete")
            return True
        confirm(f"Delete these records of {topic} on {connection.bootstrap}?", yes=yes)
        return _delete(kafka, topic, targets, as_json=json)


def _targets(kafka: Kafka, topic: str, partitions: list[int], place: OffsetSpec) -> dict[int, int]:
    """Where each partition shall begin, if that is not where it begins now. Says what goes."""
    bounds = bounds_of(kafka, [(topic, partition) for partition in partitions])
    targets = {}
    for (_, partition), offset in resolve(kafka, place, bounds).items():
        earliest, latest = bounds[topic, partition]
        if offset > latest:
            fail(
                f"{topic}-{partition} ends at offset {latest}; nothing was deleted",
                "name a lower offset, or choose partitions with -p",
            )
        if offset > earliest:
            targets[partition] = offset
            complain(f"{topic}-{partition}: offsets {earliest} to {offset - 1} of {earliest} to {latest - 1}")
    return targets


def _delete(kafka: Kafka, topic: str, targets: dict[int, int], *, as_json: bool) -> bool:
    from confluent_kafka import TopicPartition

    answers = kafka.admin.delete_records(
        [TopicPartition(topic, partition, offset) for partition, offset in targets.items()],
        request_timeout=kafka.timeout_s,
    )
    results = {at.partition: result for at, result in kafka.settle(answers).items()}
    for partition, result in sorted(results.items()):
        if is_error(result):
            complain(f"{topic}-{partition}: {explain(result)}", next_step(result))
        elif as_json:
            print(to_json({"topic": topic, "partition": partition, "earliest": result.low_watermark}))
        else:
            print(f"{topic}-{partition}: begins at offset {result.low_watermark}")
    return not any(map(is_error, results.values()))
