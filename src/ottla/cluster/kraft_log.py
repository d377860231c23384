"""Reads what a KRaft controller has written down: its snapshots and its log, `__cluster_metadata-0`. Never writes.

The log is a partition like others. A record's value is a frame version, a type and a version, each an unsigned
varint, and then the fields. A snapshot holds every record that still counts up to an offset, which with an epoch is
its name; the log is read from there on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.cluster.kraft_security import KraftSecurity
from ottla.errors import CorruptRecordError
from ottla.internal_topics.fields import TAGS, MalformedError, Reader
from ottla.records import batch, kernel
from ottla.records.record import Record, read_records
from ottla.storage import layout
from ottla.storage.batch_reader import batch_bytes
from ottla.storage.fs import FileSystem
from ottla.storage.scan import Scan

METADATA_DIR = f"{layout.METADATA_TOPIC}-0"
_SNAPSHOT = ".checkpoint"
_FRAME_VERSIONS = (0, 1)

_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE, _REMOVE_TOPIC = 2, 3, 4, 5, 9
_PARTITION_FIELDS = {
    "number": "int32", "topic_id": "uuid", "replicas": ["int32"], "isr": ["int32"], "removing": ["int32"],
    "adding": ["int32"], "leader": "int32", "leader_epoch": "int32", "partition_epoch": "int32",
}  # fmt: skip
_PARTITION_CHANGE_FIELDS = {
    "number": "int32",
    "topic_id": "uuid",
    TAGS: {1: ("leader", "int32"), 2: ("replicas", ["int32"])},
}
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4


@dataclass(slots=True)
class KraftTopic:
    """A topic as the controller knows it."""

    name: str
    topic_id: uuid.UUID
    partitions: dict[int, list[int]] = field(default_factory=dict)  # the brokers that hold each
    leader_epochs: dict[int, int] = field(default_factory=dict)  # the newest of each
    config: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class KraftMetadata:
    """What the controller knows of topics, of settings that were changed while it ran, and of who may do what."""

    topics: dict[str, KraftTopic] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)  # by node id as text; "" for all
    damage: str | None = None  # where reading had to stop
    security: list[str] = field(default_factory=list)  # how the Kafka was guarded; empty if it was open


def read_kraft_metadata(fs: FileSystem, log_dirs: Iterable[str]) -> KraftMetadata | None:
    """None where no controller's log lies in these directories."""
    path = next((f"{d}/{METADATA_DIR}" for d in log_dirs if fs.is_dir(f"{d}/{METADATA_DIR}")), None)
    if path is None:
        return None
    names = sorted(fs.list_dir(path))
    snapshots = [name for name in names if name.endswith(_SNAPSHOT)]
    start = int(snapshots[-1].partition("-")[0]) if snapshots else 0
    state = _State()
    damage = None
    try:
        for name in snapshots[-1:]:
            state.replay(_records(fs, f"{path}/{name}", 0))
        for name in names:
            if name.endswith(layout.LOG):
                state.replay(_records(fs, f"{path}/{name}", start))
    except (CorruptRecordError, MalformedError) as error:
        damage = str(error)
    return state.result(damage)


def _records(fs: FileSystem, path: str, start: int) -> Iterator[Record]:
    """Every record from offset `start` on, but not those that are about the log itself."""
    file = fs.open(path)
    try:
        end = file.size()
        scan = Scan(file, end)
        for window in scan:
            for at in range(0, window.count * kernel.ROW, kernel.ROW):
                row = window.rows[at : at + kernel.ROW]
                if row[kernel.LAST_OFFSET] >= start and not row[kernel.ATTRIBUTES] & batch.CONTROL:
                    found = read_records(batch_bytes(file, window, row))
                    yield from (record for record in found if record.offset >= start)
        if scan.status not in (kernel.OK, kernel.TRUNCATED):
            raise CorruptRecordError(
                f"{path}: {kernel.STATUS_MEANING[scan.status]} at position {scan.position}"
            )
    finally:
        file.close()


class _State:
    """What the records up to now make."""

    def __init__(self) -> None:
        self._topics: dict[uuid.UUID, KraftTopic] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._security = KraftSecurity()

    def replay(self, records: Iterable[Record]) -> None:
        for record in records:
            fields = Reader(record.value or b"", flexible=True)
            frame, kind, version = fields.varint(), fields.varint(), fields.varint()
            if frame not in _FRAME_VERSIONS:
                raise MalformedError(
                    f"the controller's record at offset {record.offset} has frame version {frame}"
                )
            if kind == _TOPIC:
                name, topic_id = fields.value("string"), _uuid(fields)
                self._topics[topic_id] = KraftTopic(name, topic_id)
            elif kind == _PARTITION:
                # Newer versions only have more fields behind these.
                new = {name: fields.value(kind) for name, kind in _PARTITION_FIELDS.items()}
                self._change(new, new["leader_epoch"])
            elif kind == _PARTITION_CHANGE:
                change = fields.struct(_PARTITION_CHANGE_FIELDS)
                self._change(change, None)
            elif kind == _REMOVE_TOPIC:
                gone = self._topics.pop(_uuid(fields), None)
                if gone is not None:
                    self._configs.pop((_TOPIC_RESOURCE, gone.name), None)
            elif kind == _CONFIG:
                self._configure(fields)
            else:
                self._security.replay(kind, version, fields)

    def _change(self, partition: dict[str, Any], leader_epoch: int | None) -> None:
        """A partition, new or changed. A change that names a leader begins a leader epoch."""
        topic = self._topics.get(uuid.UUID(partition["topic_id"]))
        if topic is None:
            return
        number = partition["number"]
        if "replicas" in partition:
            topic.partitions[number] = partition["replicas"]
        if leader_epoch is not None:
            topic.leader_epochs[number] = leader_epoch
        elif "leader" in partition:
            topic.leader_epochs[number] = topic.leader_epochs.get(number, -1) + 1

    def _configure(self, fields: Reader) -> None:
        resource = (fields.value("int8"), fields.value("string"))
        name, value = fields.value("string"), fields.value("string?")
        config = self._configs.setdefault(resource, {})
        if value is None:
            config.pop(name, None)
        else:
            config[name] = value

    def result(self, damage: str | None) -> KraftMetadata:
        topics = {topic.name: topic for topic in self._topics.values()}
        for topic in topics.values():
            topic.config = self._configs.get((_TOPIC_RESOURCE, topic.name), {})
        brokers = {name: config for (kind, name), config in self._configs.items() if kind == _BROKER_RESOURCE}
        configured = {name: config for name, config in brokers.items() if config}
        return KraftMetadata(topics, configured, damage, self._security.found(configured))


def _uuid(fields: Reader) -> uuid.UUID:
    return uuid.UUID(bytes=fields.take(16))
