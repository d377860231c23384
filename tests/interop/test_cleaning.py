"""The same dirty logs, cleaned by ottla and by Kafka: what is left must be the same, batch by batch."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.config import LogConfig
from ottla.records import batch, kernel
from ottla.records.compression.codec import Codec
from ottla.runtime import SystemRuntime
from ottla.storage.cleaning import compaction
from tests.consuming import describe, open_logs
from tests.dumping import printed, scanned
from tests.interop.adopt import adopt_checkpoints, adopt_partition, set_checkpoint
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.ottla_logs import SMALL, Partition, Writer

COMPACT = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
# `again` has been cleaned once before: Kafka goes on where ottla stopped.
KINDS = ("once", "again")
TOPICS = (*KINDS, *(f"{kind}-txn" for kind in KINDS))
CONFIG = LogConfig.from_properties(COMPACT)
EAGER = {"log.cleaner.backoff.ms": "50", "log.cleaner.dedupe.buffer.size": "2000000"}
CHECKPOINT = "cleaner-offset-checkpoint"
CLEAN_TIMEOUT_S = 240.0
# What the two cannot have in common: where a batch lies, how it is packed, and when it was cleaned.
OWN = ("position", "size", "crc", "deleteHorizonMs")

Batches = list[tuple[dict[str, Any], list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def cleaned(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> tuple[dict[str, Batches], dict[str, Batches]]:
    """By topic the batches that are left: by ottla, and by Kafka."""
    source = tmp_path_factory.mktemp("dirty") / "data"
    source.mkdir()
    dirty_from, clean_to = write_dirty(source, rng)
    ours = Path(shutil.copytree(source, tmp_path_factory.mktemp("ours") / "data"))
    clean(ours, dirty_from, clean_to)
    work_dir = tmp_path_factory.mktemp("kafka") / "work"
    let_kafka_clean(work_dir, source, dirty_from, clean_to)
    return (
        {topic: left(ours / f"{topic}-0") for topic in TOPICS},
        {topic: left(work_dir / "data" / f"{topic}-0") for topic in TOPICS},
    )


def write_dirty(data_dir: Path, rng: random.Random) -> tuple[dict[str, int | None], dict[str, int]]:
    """Where cleaning begins in each log (None: it has never been), and where it will end."""
    writer = Writer(data_dir, rng, dict.fromkeys(TOPICS, CONFIG))
    for epoch in (0, 1):
        for kind in KINDS:
            fill(writer, kind, epoch)
            writer.transactions(f"{kind}-txn", epoch)
        if epoch == 0:
            for kind in ("again", "again-txn"):
                writer.partitions[kind].compact(writer.runtime)
    for partition in writer.partitions.values():
        partition.log.raise_high_watermark(partition.log.end_offset)
    dirty_from = {topic: partition.cleaned_to for topic, partition in writer.partitions.items()}
    clean_to = {topic: p.log.segments.active.base_offset for topic, p in writer.partitions.items()}
    writer.stop()
    return dirty_from, clean_to


def fill(writer: Writer, topic: str, epoch: int) -> None:
    partition: Partition = writer.partition(topic, epoch)
    producers = [writer.producer(), writer.producer(), None]
    for number in range(20):
        codec = list(Codec)[number % len(Codec)]
        partition.append(partition.keyed_records(8), codec, producers[number % 3])


def clean(data_dir: Path, dirty_from: dict[str, int | None], clean_to: dict[str, int]) -> None:
    runtime = SystemRuntime()
    manager, logs = open_logs(data_dir, runtime, CONFIG)
    for topic in TOPICS:
        log = logs[f"{topic}-0"]
        cleaned_to = compaction.compact(
            log, dirty_from[topic], runtime.now_ms(), runtime, map_bytes=1 << 20, load_factor=0.9
        )
        assert cleaned_to == clean_to[topic]
    manager.close()
    runtime.close()


def let_kafka_clean(
    work_dir: Path, source: Path, dirty_from: dict[str, int | None], clean_to: dict[str, int]
) -> None:
    with KafkaBroker(NEWEST, work_dir) as broker, broker.client() as client:
        for topic in TOPICS:
            client.call("create", topic=topic, partitions=1, configs=COMPACT)
        broker.stop()
    data_dir = work_dir / "data"
    adopt_checkpoints(data_dir, source)
    for topic in TOPICS:
        adopt_partition(data_dir, f"{topic}-0", source / f"{topic}-0")
        first = dirty_from[topic]
        if first is not None:
            set_checkpoint(data_dir, CHECKPOINT, topic, 0, first)
    with KafkaBroker(NEWEST, work_dir, EAGER) as broker:
        wanted = {f"{topic} 0 {offset}" for topic, offset in clean_to.items()}
        deadline = time.monotonic() + CLEAN_TIMEOUT_S
        while not wanted <= set(read_lines(data_dir / CHECKPOINT)):
            assert time.monotonic() < deadline, read_lines(data_dir / CHECKPOINT)
            time.sleep(0.05)
        broker.stop()


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def left(partition_dir: Path) -> Batches:
    """Every batch without what is its cleaner's own, and its records."""
    found = []
    for path in sorted(partition_dir.glob("*.log")):
        data = path.read_bytes()
        for row in scanned(path):
            fields = {name: value for name, value in printed(row).items() if name not in OWN}
            fields["has_horizon"] = bool(row[kernel.ATTRIBUTES] & batch.DELETE_HORIZON)
            found.append((fields, list(describe(data, row))))
    return found


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_batches_are_left(
    cleaned: tuple[dict[str, Batches], dict[str, Batches]], topic: str
) -> None:
    ours, kafkas = cleaned
    assert [fields for fields, _ in ours[topic]] == [fields for fields, _ in kafkas[topic]]


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_records_are_left(
    cleaned: tuple[dict[str, Batches], dict[str, Batches]], topic: str
) -> None:
    ours, kafkas = cleaned
    assert [records for _, records in ours[topic]] == [records for _, records in kafkas[topic]]
    assert any(fields["lastOffset"] - fields["baseOffset"] >= fields["count"] for fields, _ in ours[topic])
