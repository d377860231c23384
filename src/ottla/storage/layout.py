"""The names of everything in a log directory. Pure string work; nothing here touches the disk.

    <log dir>/
      meta.properties  .lock  .kafka_cleanshutdown
      recovery-point-offset-checkpoint  log-start-offset-checkpoint
      replication-offset-checkpoint     cleaner-offset-checkpoint
      <topic>-<partition>/
        00000000000000000000.log  .index  .timeindex  .txnindex  .snapshot
        leader-epoch-checkpoint  partition.metadata

A file on its way out ends in `.deleted`, one a cleaner is writing in `.cleaned`, one that is complete and about to
take its place in `.swap`. Directories end in `-delete`, `-future` or `-stray`, after a 32-digit unique id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ottla.names import TopicPartition, is_topic_name

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
QUARANTINE = ".quarantine"

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS)
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
PID_FILE = "broker.pid"  # ottla's own, beside the lock: which process holds it

DELETE_DIR = "-delete"
FUTURE_DIR = "-future"
STRAY_DIR = "-stray"

METADATA_TOPIC = "__cluster_metadata"  # the log of a KRaft controller; never a topic of a broker

MAX_NAME_LENGTH = 255

_SEGMENT_FILE = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.\w+)?")
_MARKED_DIR = re.compile(r"(?P<name>.+)\.(?P<unique>[0-9a-f]{32})(?P<mark>-delete|-future|-stray)")


class SegmentFile(NamedTuple):
    """What the name of a file in a partition directory says."""

    base_offset: int
    suffix: str  # .log .index .timeindex .txnindex .snapshot
    marker: str  # "" or .deleted .cleaned .swap .tmp


def segment_file(base_offset: int, suffix: str, marker: str = "") -> str:
    return f"{base_offset:020d}{suffix}{marker}"


def parse_segment_file(name: str) -> SegmentFile | None:
    match = _SEGMENT_FILE.fullmatch(name)
    return SegmentFile(int(match[1]), match[2], match[3] or "") if match else None


def segment_files(names: Iterable[str]) -> list[SegmentFile]:
    """Those of the names in a partition directory that are files of segments."""
    return [file for file in map(parse_segment_file, names) if file is not None]


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition that a directory of this name holds, or None. Marks (`-delete` and so on) are not stripped."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not partition.isascii() or not partition.isdigit() or not is_topic_name(topic):
        return None
    return TopicPartition(topic, int(partition))


def marked_dir(partition: TopicPartition, unique: str, mark: str) -> str:
    """`<topic>-<partition>.<unique><mark>`, with a long topic cut so that the name fits into a directory."""
    rest = f"-{partition.partition}.{unique}{mark}"
    return partition.topic[: MAX_NAME_LENGTH - len(rest)] + rest


def parse_marked_dir(name: str) -> tuple[TopicPartition, str] | None:
    """For `<topic>-<partition>.<unique><mark>`: the partition and the mark."""
    match = _MARKED_DIR.fullmatch(name)
    partition = parse_partition_dir(match["name"]) if match else None
    return (partition, match["mark"]) if match and partition else None
