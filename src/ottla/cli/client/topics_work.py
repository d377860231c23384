"""What the commands of `ottla topics` do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.cli.client.configs_work import described_configs, is_set_here
from ottla.cli.client.connection import Kafka, complain, explain, is_error, wait_until_shown
from ottla.cli.client.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Bounds,
    Kind,
    OffsetSpec,
    bounds_of,
    list_offsets,
)
from ottla.cli.json_text import to_json
from ottla.cli.tables import print_heading, print_table

if TYPE_CHECKING:
    from confluent_kafka.admin import TopicDescription

_SPECS = {Kind.EARLIEST: EARLIEST, Kind.LATEST: LATEST, Kind.MAX_TIMESTAMP: MAX_TIMESTAMP}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new topic shall be; None leaves it to the broker."""

    partitions: int | None
    replication_factor: int | None
    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Teller:
    """Says for each topic what was done: success on stdout, failure on stderr."""

    as_json: bool
    validate_only: bool = False

    def done(self, topic: str, what: str, **fields: object) -> None:
        if self.as_json:
            print(to_json({"topic": topic, what: not self.validate_only, **fields}))
        else:
            print(f"{topic}: " + (f"could be {what}" if self.validate_only else what))

    def results(self, kafka: Kafka, results: Mapping[str, Any], what: str, fine: str = "") -> bool:
        """Whether all went well; an error with the name `fine` counts as well."""
        for topic, result in results.items():
            if not is_error(result):
                self.done(topic, what)
            elif result.name() != fine:
                complain(f"{topic}: {explain(result)}", kafka.next_step(result, topic))
        return all(not is_error(result) or result.name() == fine for result in results.values())


def user_topics(kafka: Kafka) -> list[str]:
    """All topics that are not Kafka's own."""
    names = kafka.topic_names()
    internal = _internal(kafka, names)
    return [name for name in names if name not in internal]


def _internal(kafka: Kafka, names: Sequence[str]) -> set[str]:
    """Kafka's own topics all begin with two underscores, but not all that do are its own."""
    found = kafka.describe([name for name in names if name.startswith("__")])
    return {name for name, topic in found.items() if not is_error(topic) and topic.is_internal}


def list_topics(kafka: Kafka, *, long: bool, internal: bool, as_json: bool) -> None:
    topics = kafka.admin.list_topics(timeout=kafka.timeout_s).topics
    own = _internal(kafka, list(topics))
    shown = [name for name in sorted(topics) if internal or name not in own]
    rows: list[Sequence[object]] = []
    for name in shown:
        partitions = topics[name].partitions
        replicas = max((len(partition.replicas) for partition in partitions.values()), default=0)
        if as_json:
            fields = {"partitions": len(partitions), "replicas": replicas, "internal": name in own}
            print(to_json({"topic": name, **fields}))
        elif long:
            rows.append((name, len(partitions), replicas))
        else:
            print(name)
    if long and not as_json:
        print_table(("topic", "partitions>", "replicas>"), rows)


def describe(kafka: Kafka, names: Sequence[str], *, as_json: bool) -> bool:
    """Whether all topics are there."""
    found = kafka.describe(names)
    there = {name: topic for name, topic in found.items() if not is_error(topic)}
    configs = described_configs(kafka, "topic", list(there))
    # A partition without a leader has nobody to ask for offsets.
    led = [(name, p.id) for name, topic in there.items() for p in topic.partitions if _node(p.leader) >= 0]
    bounds = bounds_of(kafka, led)
    for name, result in found.items():
        if is_error(result):
            complain(f"{name}: {explain(result)}", kafka.next_step(result, name))
            continue
        own = {key: entry.value for key, entry in sorted(configs[name].items()) if is_set_here(entry)}
        partitions = [_partition_fields(p, bounds.get((name, p.id))) for p in result.partitions]
        if as_json:
            print(to_json({**_topic_fields(name, result), "configs": own, "partitions": partitions}))
        else:
            _print_topic(name, result, own, partitions)
    return len(there) == len(found)


def _node(node: Any) -> int:
    return -1 if node is None else int(node.id)


def _topic_id(topic: TopicDescription) -> str:
    """As Kafka writes it; the client library has another base64."""
    return str(topic.topic_id).replace("+", "-").replace("/", "_")


def _topic_fields(name: str, topic: TopicDescription) -> dict[str, object]:
    return {"topic": name, "id": _topic_id(topic), "internal": topic.is_internal}


def _partition_fields(partition: Any, bounds: Bounds | None) -> dict[str, Any]:
    return {
        "partition": partition.id,
        "leader": _node(partition.leader),
        "replicas": [_node(node) for node in partition.replicas],
        "isr": [_node(node) for node in partition.isr],
        "earliest": None if bounds is None else bounds.earliest,
        "latest": None if bounds is None else bounds.latest,
    }


def _print_topic(
    name: str, topic: TopicDescription, configs: Mapping[str, str], partitions: list[dict[str, Any]]
) -> None:
    replicas = max((len(fields["replicas"]) for fields in partitions), default=0)
    internal = ", internal" if topic.is_internal else ""
    print_heading(name, f"partitions {len(partitions)}, replicas {replicas}, id {_topic_id(topic)}{internal}")
    for key, value in configs.items():
        print(f"  {key}={value}")
    rows: list[Sequence[object]] = []
    for fields in partitions:
        leader = "none" if fields["leader"] < 0 else fields["leader"]
        nodes = (",".join(map(str, fields[key])) for key in ("replicas", "isr"))
        ends = ("-" if fields[key] is None else fields[key] for key in ("earliest", "latest"))
        rows.append((fields["partition"], leader, *nodes, *ends))
    names = ("partition>", "leader>", "replicas", "isr", "earliest>", "latest>")
    print_table(names, rows, indent="  ")


def create(
    kafka: Kafka, names: Sequence[str], wanted: Wanted, teller: Teller, *, if_not_exists: bool
) -> bool:
    from confluent_kafka.admin import NewTopic

    topics = [
        NewTopic(
            name,
            num_partitions=wanted.partitions or -1,
            replication_factor=wanted.replication_factor or -1,
            config=wanted.config,
        )
        for name in dict.fromkeys(names)
    ]
    answers = kafka.admin.create_topics(
        topics, validate_only=teller.validate_only, request_timeout=kafka.timeout_s
    )
    results = kafka.settle(answers)
    made = [name for name, result in results.items() if not is_error(result)]
    if not teller.validate_only:
        wait_until_shown(lambda: not any(map(is_error, kafka.describe(made).values())))
    return teller.results(kafka, results, "created", "TOPIC_ALREADY_EXISTS" if if_not_exists else "")


def delete(kafka: Kafka, names: Sequence[str], teller: Teller, *, if_exists: bool) -> bool:
    answers = kafka.admin.delete_topics(list(dict.fromkeys(names)), request_timeout=kafka.timeout_s)
    results = kafka.settle(answers)
    gone = [name for name, result in results.items() if not is_error(result)]
    wait_until_shown(lambda: all(map(is_error, kafka.describe(gone).values())))
    return teller.results(kafka, results, "deleted", "UNKNOWN_TOPIC_OR_PART" if if_exists else "")


def add_partitions(kafka: Kafka, name: str, total: int, teller: Teller) -> bool:
    from confluent_kafka.admin import NewPartitions

    answers = kafka.admin.create_partitions(
        [NewPartitions(name, total)], validate_only=teller.validate_only, request_timeout=kafka.timeout_s
    )
    results = kafka.settle(answers)
    if not teller.validate_only and not is_error(results[name]):
        wait_until_shown(lambda: len(kafka.topic(name).partitions) >= total)
    return teller.results(kafka, results, "widened")


def offsets(
    kafka: Kafka, names: Sequence[str], place: OffsetSpec, chosen: Sequence[int] | None, *, as_json: bool
) -> None:
    value = place.number if place.kind is Kind.TIME else _SPECS[place.kind]
    partitions = [(name, partition) for name in names for partition in kafka.partitions(name, chosen)]
    found = list_offsets(kafka, dict.fromkeys(partitions, value))
    for topic, partition in partitions:
        result = found[topic, partition]
        offset = result.offset if result.offset >= 0 else None
        if as_json:
            timestamp = result.timestamp if result.timestamp >= 0 else None
            fields = {"partition": partition, "offset": offset, "timestamp": timestamp}
            print(to_json({"topic": topic, **fields}))
        else:
            print(f"{topic}:{partition}:{'' if offset is None else offset}")
