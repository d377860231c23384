"""What lies in the log directories of a Kafka: whose they are, which topics, and with what settings. Never writes."""

from __future__ import annotations

import posixpath
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.cluster.kraft_log import KraftTopic, read_kraft_metadata
from ottla.config import BROKER_KEYS, DYNAMIC_BROKER_KEYS, LogConfig, parse
from ottla.errors import ConfigError, StorageError
from ottla.names import TopicPartition
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem

_NODE_DIR = re.compile(r"node\.[0-9]+")


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """A partition's directory."""

    path: str
    node_id: int
    topic_id: uuid.UUID | None
    leader_epoch: int  # the newest that its log or Kafka's controller knows


@dataclass(slots=True)
class FoundTopic:
    """A topic, from its directories and from what Kafka's controller says about it."""

    name: str
    topic_id: uuid.UUID | None
    partitions: dict[int, FoundPartition] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # settings that cannot be taken over, and why
    known_to_kafka: bool | None = None  # None: no controller's log is there

    @property
    def holes(self) -> list[int]:
        return [
            number for number in range(max(self.partitions, default=-1) + 1) if number not in self.partitions
        ]


@dataclass(slots=True)
class Survey:
    """Everything that was found."""

    log_dirs: list[str]
    cluster_id: str
    node_ids: list[int]
    topics: dict[str, FoundTopic] = field(default_factory=dict)
    broker_configs: dict[int | None, dict[str, str]] = field(default_factory=dict)
    # Directories on their way out, and the controller's log.
    left_alone: list[str] = field(default_factory=list)
    security: list[str] = field(default_factory=list)  # how the Kafka was guarded, if it was
    notes: list[str] = field(default_factory=list)


def find_log_dirs(fs: FileSystem, paths: Sequence[str]) -> list[str]:
    """The log directories that these paths are, or, where several brokers share a place, have in them."""
    found = []
    for path in (path.rstrip("/") or "/" for path in paths):
        if not fs.is_dir(path):
            raise StorageError(f"{path} is not a directory; give the directories that `log.dirs` names")
        nodes = sorted(name for name in fs.list_dir(path) if _NODE_DIR.fullmatch(name))
        if fs.exists(f"{path}/{layout.META_PROPERTIES}"):
            found.append(path)
        elif nodes:
            found += [f"{path}/{name}" for name in nodes]
        else:
            raise StorageError(
                f"{path} has no {layout.META_PROPERTIES}: it is not the data directory of a Kafka broker"
            )
    return list(dict.fromkeys(found))


def survey(fs: FileSystem, log_dirs: Sequence[str]) -> Survey:
    """Look through all directories of a broker, or of several brokers of one cluster."""
    owners = {path: _owner(fs, path) for path in log_dirs}
    clusters = sorted({cluster_id for cluster_id, _ in owners.values()})
    if len(clusters) > 1:
        raise StorageError(f"the directories belong to several clusters: {', '.join(clusters)}")
    found = Survey(list(log_dirs), clusters[0], sorted({node_id for _, node_id in owners.values()}))
    for path, (_, node_id) in owners.items():
        _add_partitions(fs, found, path, node_id)
    for topic in found.topics.values():
        topic.topic_id = _common_id(topic)
    _add_settings(fs, found)
    for topic in found.topics.values():
        if topic.holes:
            missing = ", ".join(map(str, topic.holes))
            found.notes.append(
                f"{topic.name}: partition {missing} does not lie here and has no leader for now"
            )
    return found


def _owner(fs: FileSystem, path: str) -> tuple[str, int]:
    properties = checkpoint.read_properties(fs, f"{path}/{layout.META_PROPERTIES}")
    if "cluster.id" not in properties or not properties.get("node.id", "").isdigit():
        older = "broker.id" in properties
        why = (
            "comes from a Kafka with ZooKeeper: migrate it to KRaft first"
            if older
            else "names no cluster and node"
        )
        raise StorageError(f"{path}/{layout.META_PROPERTIES} {why}")
    return properties["cluster.id"], int(properties["node.id"])


def _add_partitions(fs: FileSystem, found: Survey, log_dir: str, node_id: int) -> None:
    for name in sorted(fs.list_dir(log_dir)):
        path = f"{log_dir}/{name}"
        if not fs.is_dir(path):
            continue
        partition = layout.parse_partition_dir(name)
        if layout.parse_marked_dir(name) or (partition and partition.topic == layout.METADATA_TOPIC):
            found.left_alone.append(path)
        elif partition is None:
            raise StorageError(
                f"{path} is not a partition's directory; move it away, Kafka would refuse it too"
            )
        else:
            _add_partition(fs, found, partition, path, node_id)


def _add_partition(fs: FileSystem, found: Survey, partition: TopicPartition, path: str, node_id: int) -> None:
    topic = found.topics.setdefault(partition.topic, FoundTopic(partition.topic, None))
    other = topic.partitions.get(partition.partition)
    if other is not None:
        raise StorageError(f"{partition} lies in {other.path} and in {path}; move one away")
    topic_id = checkpoint.read_topic_id(fs, f"{path}/{layout.PARTITION_METADATA}")
    epochs = checkpoint.read_epochs(fs, f"{path}/{layout.LEADER_EPOCHS}")
    newest = max((epoch for epoch, _ in epochs), default=0)
    topic.partitions[partition.partition] = FoundPartition(path, node_id, topic_id, newest)


def _common_id(topic: FoundTopic) -> uuid.UUID | None:
    ids = {p.topic_id: p.path for p in topic.partitions.values() if p.topic_id is not None}
    if len(ids) > 1:
        places = ", ".join(posixpath.basename(path) for path in ids.values())
        raise StorageError(
            f"the partitions of {topic.name} have different topic ids ({places}); move the old ones away"
        )
    return next(iter(ids), None)


# -- settings


def _add_settings(fs: FileSystem, found: Survey) -> None:
    kafka = read_kraft_metadata(fs, found.log_dirs)
    if kafka is None:
        found.notes.append(
            "no controller's log lies here: settings of topics are not taken over, and whether the Kafka was guarded "
            "(TLS, SASL, ACLs) is not known; ottla serves it to everybody who can reach it"
        )
        return
    if kafka.security:
        found.security = kafka.security
        found.notes.append(
            f"the Kafka was guarded ({'; '.join(kafka.security)}), and ottla is not: `ottla serve` refuses to serve it "
            "unless it is told to, with --set ottla.serve.open=true"
        )
    if kafka.damage is not None:
        found.notes.append(f"the controller's log is damaged, settings may be missing: {kafka.damage}")
    for topic in found.topics.values():
        known = kafka.topics.get(topic.name)
        topic.known_to_kafka = known is not None and topic.topic_id in (None, known.topic_id)
        if known is None or not topic.known_to_kafka:
            found.notes.append(
                f"{topic.name}: Kafka's controller does not know it; it is taken over all the same"
            )
            continue
        topic.topic_id = known.topic_id
        _add_leader_epochs(topic, known)
        topic.config, topic.left_out = _usable(known.config)
        for key, why in topic.left_out.items():
            found.notes.append(f"{topic.name}: {key}={known.config[key]} is not taken over: {why}")
    for name, config in kafka.broker_configs.items():
        _add_broker_settings(found, name, config)


def _add_leader_epochs(topic: FoundTopic, known: KraftTopic) -> None:
    """A log knows only epochs in which something was written; clients know those of the controller."""
    for number, partition in topic.partitions.items():
        newest = max(partition.leader_epoch, known.leader_epochs.get(number, 0))
        topic.partitions[number] = replace(partition, leader_epoch=newest)


def _usable(config: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings that hold here, and the others with the reason. None may keep a topic from being taken over."""
    good: dict[str, str] = {}
    bad: dict[str, str] = {}
    for key, value in sorted(config.items()):
        try:
            LogConfig.from_properties({**good, key: value})
        except ConfigError as error:
            bad[key] = str(error)
        else:
            good[key] = value
    return good, bad


def _add_broker_settings(found: Survey, name: str, config: Mapping[str, str]) -> None:
    if name and (not name.isdigit() or int(name) not in found.node_ids):
        return
    whose = f"broker {name}" if name else "all brokers"
    for key, value in sorted(config.items()):
        if key not in DYNAMIC_BROKER_KEYS:
            found.notes.append(f"{whose}: {key} is not taken over: it cannot be changed while ottla runs")
            continue
        try:
            parse(BROKER_KEYS[key], value)
        except ConfigError as error:
            found.notes.append(f"{whose}: {key} is not taken over: {error}")
        else:
            found.broker_configs.setdefault(int(name) if name else None, {})[key] = value
